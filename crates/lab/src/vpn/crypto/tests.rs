use super::*;
use crate::report::TableCell;

#[test]
fn each_claim_on_the_papers_own_figures() {
    let printed = claims::ClaimRates::printed();
    let claims = judged(&claims::RULES, &[(FigureSource::Printed, &printed)]);
    let verdicts: Vec<Option<(bool, &str)>> = claims
        .iter()
        .map(|claim| claim.judgements.first().map(|it| (it.holds, it.because.as_str())))
        .collect();
    assert_eq!(
        verdicts,
        [
            None,
            None,
            Some((true, "at least 2.23 times (1 KiB)")),
            Some((true, "1.07 (1 KiB) to 1.10 (63 KiB)")),
            Some((true, "3.43 (1 KiB) to 3.46 (4 KiB)")),
            // The difference is 30 of 302 or of 332.
            Some((false, "332 and 302: 9.0 or 9.9 %")),
            None,
            None,
        ]
    );
}

#[test]
fn measured_claims_are_judged_where_there_are_figures() {
    let mut rates = claims::ClaimRates::printed();
    rates.back = Some(rates.forth);
    rates.zeros = Some([1.0, 1.0, 1.0, 0.5]);
    let claims = judged(&claims::RULES, &[(FigureSource::Here, &rates)]);
    let said = |at: usize| {
        let judgement = &claims[at].judgements[0];
        (judgement.holds, judgement.because.as_str())
    };
    assert_eq!(said(6), (true, "1.00 (RC5, 1 KiB) to 1.00 (RC5, 1 KiB)"));
    assert_eq!(said(7), (false, "0.50 (3DES) to 1.00 (MD5)"));
}

#[test]
fn des_and_processors_in_number_can_hold_and_can_fail() {
    let rates = |des: [f64; 3], times: [f64; 4]| {
        let printed = claims::ClaimRates::printed();
        let (back, des) = (Some(printed.forth), Some([[70.0, 75.0, 80.0], des]));
        let rates = claims::ClaimRates { back, des, processors: Some((4.0, times)), ..printed };
        [0, 1].map(|at: usize| (claims::RULES[at].judge)(&rates).unwrap())
    };
    let [linear, des] = rates([77.0; 3], [3.9, 3.8, 3.61, 4.0]);
    assert_eq!(linear, (true, "4 processors, at least 3.61 times (RC5)".to_owned()));
    assert_eq!(des, (true, "2.50 (encrypting, 1 KiB) to 2.86 (encrypting, 63 KiB)".to_owned()));
    let [linear, des] = rates([77.0, 77.0, 90.0], [3.9, 3.8, 3.61, 3.5]);
    assert_eq!(linear, (false, "4 processors, at least 3.50 times (3DES)".to_owned()));
    assert_eq!(des, (false, "2.50 (encrypting, 1 KiB) to 3.21 (decrypting, 63 KiB)".to_owned()));
}

#[test]
fn every_algorithm_has_its_rows_and_the_papers_their_figures() {
    let mut seen = Vec::new();
    let report = crypto(Effort::Quick, &mut |step| seen.push((step.done, step.of))).unwrap();
    assert!(seen.iter().enumerate().all(|(at, step)| *step == (at, seen.len())), "{seen:?}");
    let [papers, today, old, processors @ ..] = report.tables.as_slice() else {
        panic!("{:?}", report.tables)
    };
    let several = std::thread::available_parallelism().is_ok_and(|number| number.get() > 1);
    assert_eq!(
        processors.iter().map(|table| table.rows.len()).collect::<Vec<_>>(),
        vec![4; usize::from(several)]
    );
    let names: Vec<&str> = papers.rows.iter().map(|row| row.name.as_str()).collect();
    for name in ["hmac-md5-96 sign", "hmac-sha-1-96 sign", "3des-cbc encrypt", "3des-cbc decrypt"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let printed = |cell: &TableCell| cell.paper.is_some() && cell.compared.is_some_and(|it| it > 0.0);
    assert!(papers.rows.iter().flat_map(|row| &row.cells).all(printed));
    assert!(today.rows.iter().any(|row| row.name == "aes-128-gcm seal"));
    assert!(today.rows.iter().all(|row| row.cells.len() == 3) && !today.is_in_paper());
    let all: usize = [papers, today, old].iter().map(|table| table.rows.len()).sum();
    assert_eq!(all, Subject::all().map(|it| it.directions().len()).sum::<usize>());
    assert_eq!(report.claims.len(), claims::RULES.len());
    let here = |it: &&Claim| it.judgements.iter().any(|it| it.figures == FigureSource::Here);
    assert_eq!(report.claims.iter().filter(here).count(), claims::RULES.len() - usize::from(!several));
}
