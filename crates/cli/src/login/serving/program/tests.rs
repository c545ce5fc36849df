use std::time::Duration;

use strait_node::poll;

use super::*;

fn with_ends(ends: Ends) -> RunningProgram {
    RunningProgram {
        ends,
        process: 0,
        waiting: Vec::new(),
        written: 0,
        input: Input::Open,
        modes: None,
        what: String::new(),
    }
}

#[test]
fn what_a_slow_program_has_taken_is_not_kept() {
    let (mut reader, input) = io::pipe().unwrap();
    strait_node::login::do_not_wait(input.as_fd()).unwrap();
    let mut program = with_ends(Ends::Pipes { input: Some(input), out: None, errors: None });
    let (mut given, mut taken, mut got) = (0_usize, 0, vec![0; 32 << 10]);
    for _ in 0..200 {
        // As much as a client may have on the way, so that some is left each time.
        while given - taken < 256 << 10 {
            let bytes: Vec<u8> = (given..given + 4096).map(|at| u8::try_from(at % 251).unwrap()).collect();
            program.input(&bytes);
            given += bytes.len();
        }
        let before = taken;
        taken += program.write().0;
        assert!(before < taken && taken < given && program.waiting.len() <= 512 << 10);
        reader.read_exact(&mut got).unwrap();
    }
    let first = 199 * got.len();
    assert!(got.iter().zip(first..).all(|(byte, at)| usize::from(*byte) == at % 251));
}

#[test]
fn input_that_no_process_can_take_any_more_keeps_no_loop_awake() {
    // Without lines and echo, so that what is typed fills the terminal.
    let (pty, terminal) =
        Pty::open(size(WindowSize::default()), &[53, 0, 0, 0, 0, 51, 0, 0, 0, 0, 0]).unwrap();
    let mut program = with_ends(Ends::Terminal { pty, ended: false });
    program.input(&[b'x'; 1 << 20]);
    while program.write().0 > 0 {}
    assert!(!program.waiting.is_empty());
    drop(terminal);
    assert!(matches!(program.read(&mut [0; 64]), Some(Output::Ended(OutputKind::Terminal))));
    assert_eq!(program.write(), (0, true));
    assert!(!program.takes_input());
    assert_eq!(program.write(), (0, false), "said once");
    assert_eq!(poll::wait(&mut program.interest(true), Some(Duration::ZERO)).unwrap(), 0);
}
