//! The key managers of three nodes.

use proptest::prelude::*;
use proptest::test_runner::Config;

use strait_sim::operations::keys::{self, KEY_OPERATION_LEN, KEY_SETTINGS_LEN, KeyOperation, KeySettings};

fn operations() -> impl Strategy<Value = Vec<KeyOperation>> {
    prop::collection::vec(any::<[u8; KEY_OPERATION_LEN]>().prop_map(KeyOperation::read), 1..60)
}

fn settings() -> impl Strategy<Value = KeySettings> {
    any::<[u8; KEY_SETTINGS_LEN]>().prop_map(KeySettings::read)
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn both_ends_agree_once_the_network_is_good_again(settings in settings(), operations in operations()) {
        let outcome = keys::run_all(settings, operations);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        prop_assert!(outcome.unwrap().established >= 6);
    }
}
