//! `crypt(1)`: the machine of one rotor with 256 contacts that Unix had for files (Reeds and Weinberger, *File security and the UNIX
//! system crypt command*, 1984). It protects nothing today.

/// Contacts of the rotors.
const CONTACTS: usize = 256;

/// The machine, set up.
pub(super) struct RotorMachine {
    rotor: [u8; CONTACTS],
    back: [u8; CONTACTS],
    reflector: [u8; CONTACTS],
}

impl RotorMachine {
    /// Set up with these 13 bytes, which `crypt` gets from `crypt(3)` of what the user types and its first two characters.
    pub(super) fn new(key: &[u8; 13]) -> RotorMachine {
        let number = (0..)
            .zip(key)
            .fold(123_i32, |seed, (at, byte)| seed.wrapping_mul(i32::from(*byte)).wrapping_add(at));
        let mut seed = number;
        let mut rotor: [u8; CONTACTS] = std::array::from_fn(|at| at as u8);
        let mut reflector = [0_u8; CONTACTS];
        for at in 0..CONTACTS {
            seed = seed.wrapping_mul(5).wrapping_add(key[at % key.len()].into());
            let random = (i64::from(seed) % 65_521) as u32;
            let last = CONTACTS - 1 - at;
            rotor.swap(last, (random & 0xff) as usize % (last + 1));
            if reflector[last] != 0 || last == 0 {
                continue;
            }
            let mut other = ((random >> 8) & 0xff) as usize % last;
            while reflector[other] != 0 {
                other = (other + 1) % last;
            }
            (reflector[last], reflector[other]) = (other as u8, last as u8);
        }
        let mut back = [0; CONTACTS];
        for (at, contact) in rotor.iter().enumerate() {
            back[usize::from(*contact)] = at as u8;
        }
        RotorMachine { rotor, back, reflector }
    }

    /// Encrypts a file, or decrypts it.
    pub(super) fn run(&self, file: &mut [u8]) {
        let (mut first, mut second) = (0_u8, 0_u8);
        for byte in file {
            let forth = self.rotor[usize::from(byte.wrapping_add(first))].wrapping_add(second);
            let turned = self.reflector[usize::from(forth)].wrapping_sub(second);
            *byte = self.back[usize::from(turned)].wrapping_sub(first);
            first = first.wrapping_add(1);
            second = second.wrapping_add(u8::from(first == 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8; 13] = b"klf.AIrOikym2";

    #[test]
    fn twice_the_same_machine_gives_the_file_again() {
        let machine = RotorMachine::new(KEY);
        let file: Vec<u8> = (0..100_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        let mut turned = file.clone();
        machine.run(&mut turned);
        assert_ne!(turned, file);
        machine.run(&mut turned);
        assert_eq!(turned, file);
    }

    #[test]
    fn it_writes_what_debians_crypt_does() {
        // `crypt klogin` of the package mcrypt 2.6.8 (its enigma, key mode scrypt), given 600 times the letter u.
        let mut file = [b'u'; 600];
        RotorMachine::new(KEY).run(&mut file);
        assert_eq!(file[..8], [0xd0, 0x7d, 0x97, 0x47, 0xc3, 0x16, 0x7e, 0xcd]);
        assert_eq!(file[592..], [0x98, 0xff, 0x4c, 0xf0, 0x39, 0x89, 0x8d, 0x25]);
    }

    #[test]
    fn the_reflector_leads_nowhere_to_itself() {
        let machine = RotorMachine::new(KEY);
        for (at, contact) in machine.reflector.iter().enumerate() {
            assert_eq!(usize::from(machine.reflector[usize::from(*contact)]), at);
            assert_ne!(usize::from(*contact), at);
        }
    }
}
