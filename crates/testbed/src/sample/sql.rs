//! A dump of a small shop's database, as `mysqldump` and `pg_dump --inserts` write it.

use strait_clock::Random;

use super::date::{Moment, START};
use super::phrase::{any, between, favour, once_in, person, sentence, zipf};
use super::vocabulary::{CITIES, PRODUCTS, SITES, STREETS};

const HEAD: &str = "--\n-- Database dump of `shop`, one transaction\n--\n\nSET NAMES utf8mb4;\nSET FOREIGN_KEY_CHECKS = 0;\n\n";

/// A table: its name, its columns, its share of the file in twentieths, and what writes row number n.
struct SqlTable {
    name: &'static str,
    columns: &'static str,
    twentieths: usize,
    row: fn(&mut Random, u64) -> String,
}

const TABLES: [SqlTable; 4] = [
    SqlTable {
        name: "customers",
        columns: "id int NOT NULL,\n  given varchar(60) NOT NULL,\n  family varchar(60) NOT NULL,\n  street varchar(120),\n  \
                  city varchar(60),\n  phone varchar(24),\n  created datetime NOT NULL,\n  PRIMARY KEY (id)",
        twentieths: 6,
        row: customer,
    },
    SqlTable {
        name: "order_lines",
        columns: "id bigint NOT NULL,\n  order_id int NOT NULL,\n  product varchar(80),\n  quantity int NOT NULL,\n  \
                  price decimal(10,2) NOT NULL,\n  site char(3),\n  PRIMARY KEY (id)",
        twentieths: 6,
        row: order_line,
    },
    SqlTable {
        name: "movements",
        columns: "id bigint NOT NULL,\n  product_id int NOT NULL,\n  change_by int NOT NULL,\n  reason varchar(20),\n  \
                  booked datetime NOT NULL,\n  PRIMARY KEY (id)",
        twentieths: 4,
        row: movement,
    },
    SqlTable {
        name: "remarks",
        columns: "id int NOT NULL,\n  customer_id int NOT NULL,\n  body text,\n  written datetime NOT NULL,\n  PRIMARY KEY (id)",
        twentieths: 4,
        row: remark,
    },
];

/// About `size` bytes of statements, ending with a whole one.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = String::with_capacity(size + 4096);
    out.push_str(HEAD);
    for table in &TABLES {
        let end = out.len() + size * table.twentieths / 20;
        out.push_str(&format!(
            "DROP TABLE IF EXISTS `{0}`;\nCREATE TABLE `{0}` (\n  {1}\n) ENGINE=InnoDB;\n\n",
            table.name, table.columns
        ));
        let mut number = 1;
        while out.len() < end {
            let rows: Vec<String> = (number..number + 8).map(|row| (table.row)(random, row)).collect();
            out.push_str(&format!("INSERT INTO `{}` VALUES {};\n", table.name, rows.join(",")));
            number += 8;
        }
        out.push('\n');
    }
    out.into_bytes()
}

fn customer(random: &mut Random, number: u64) -> String {
    let (given, family) = person(random);
    let created = START - 40_000_000 + number * 9_973 + random.below(9_000);
    format!(
        "({},'{given}','{family}','{} {}','{}','+49 40 {:07}','{}')",
        10_000 + number,
        any(random, &STREETS),
        1 + zipf(random, 120),
        favour(random, &CITIES),
        random.below(10_000_000),
        Moment::from_unix(created).sql(),
    )
}

fn order_line(random: &mut Random, number: u64) -> String {
    let product = zipf(random, PRODUCTS.len());
    let order = 218_000 + number / 3;
    format!(
        "({number},{order},'{}',{},{}.{:02},'{}')",
        PRODUCTS.get(product).copied().unwrap_or_default(),
        1 + zipf(random, 24),
        3 + product * 7,
        [0, 50, 90, 99, 25][zipf(random, 5)],
        favour(random, &SITES),
    )
}

fn movement(random: &mut Random, number: u64) -> String {
    let booked = START - 3_000_000 + number * 377 + random.below(300);
    format!(
        "({},{},{}{},'{}','{}')",
        700_000 + number,
        10_000 + zipf(random, PRODUCTS.len()) * 37,
        if once_in(random, 3) { "" } else { "-" },
        1 + zipf(random, 48),
        favour(random, &["sale", "delivery", "return", "inventory", "loss"]),
        Moment::from_unix(booked).sql(),
    )
}

fn remark(random: &mut Random, number: u64) -> String {
    let (first, second) = (between(random, 6, 18), between(random, 4, 14));
    let written = START - 2_000_000 + number * 1_201 + random.below(1_000);
    format!(
        "({number},{},'{} {}','{}')",
        between(random, 10_000, 14_000),
        sentence(random, first),
        sentence(random, second),
        Moment::from_unix(written).sql(),
    )
}
