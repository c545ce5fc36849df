//! The data plane of three sites.

use proptest::prelude::*;
use proptest::test_runner::Config;

use strait_sim::operations::data::{
    self, DataOperation, DataSettings, DataSummary, OPERATION_LEN, SETTINGS_LEN,
};

fn operations() -> impl Strategy<Value = Vec<DataOperation>> {
    prop::collection::vec(any::<[u8; OPERATION_LEN]>().prop_map(DataOperation::read), 1..120)
}

fn settings() -> impl Strategy<Value = DataSettings> {
    any::<[u8; SETTINGS_LEN]>().prop_map(DataSettings::read)
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_packet_arrives_once_or_is_counted_as_dropped(
        settings in settings(),
        operations in operations(),
    ) {
        let outcome = data::run_all(settings, operations);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        let DataSummary { given, left, received, dropped, missing } = outcome.unwrap();
        prop_assert!(left == received + missing && given >= left + dropped);
    }
}
