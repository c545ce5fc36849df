mod files;
mod walking;
