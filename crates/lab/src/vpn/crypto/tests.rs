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
    assert_eq!(claims[4].judgements[0].because, "1.00 (RC5, 1 KiB) to 1.00 (RC5, 1 KiB)");
    assert!(claims[4].judgements[0].holds);
    assert_eq!(claims[5].judgements[0].because, "0.50 (3DES) to 1.00 (MD5)");
    assert!(!claims[5].judgements[0].holds);
}

#[test]
fn every_algorithm_has_its_rows_and_the_papers_their_figures() {
    let mut seen = Vec::new();
    let report = crypto(Effort::Quick, &mut |step| seen.push((step.done, step.of))).unwrap();
    assert!(seen.iter().enumerate().all(|(at, step)| *step == (at, seen.len())), "{seen:?}");
    let [papers, today, old] = report.tables.as_slice() else { panic!("{:?}", report.tables) };
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
    assert!(report.claims.iter().all(|it| it.judgements.iter().any(|it| it.figures == FigureSource::Here)));
}
