//! The directory as a process, over its store alone and over etcd.
