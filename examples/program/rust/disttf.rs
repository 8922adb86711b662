//! The program's side of docs/program_protocol.md, with Rust's standard library alone, on Linux (64 bits).
use std::ffi::{c_int, c_long, c_void};
use std::{env, fmt::Write, process, ptr, slice};

#[repr(C)]
struct Part { start: *mut c_void, size: usize }
#[repr(C)]
struct Packet { name: *mut c_void, name_size: u32, parts: *mut Part, part_count: usize, extra: *mut c_void,
                extra_size: usize, flags: c_int }
extern "C" {
    fn recvmsg(fd: c_int, packet: *mut Packet, flags: c_int) -> isize;
    fn send(fd: c_int, data: *const c_void, size: usize, flags: c_int) -> isize;
    fn mmap(at: *mut c_void, size: usize, protection: c_int, flags: c_int, fd: c_int, offset: c_long) -> *mut c_void;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
}

/// One variable of the run. shape: empty for one number.
pub struct Variable { pub name: &'static str, pub shape: &'static [usize], pub decays: bool }

impl Variable {
    fn size(&self) -> usize { self.shape.iter().product() }
    fn floats(&self) -> usize { (self.size() + 15) / 16 * 16 }
}

/// What the task asks for.
pub enum Request {
    /// Write the initial values with gradient(), then answer().
    Initial,
    /// Compute the gradients of `rows`, then answer with push().
    Compute { rows: Vec<u32> },
    /// Answer with evaluation().
    Evaluate,
    /// The run is over, and the parameters are the result.
    End,
}

pub struct Run { pub step: u64, pub slot: u64, pub seed: u64, fd: c_int, begins: Vec<(usize, usize)>, memory: [*mut f32; 2] }

fn fail(code: i32, sentence: &str) -> ! {
    eprintln!("disttf: {sentence}");
    process::exit(code)
}

impl Run {
    /// row_count: rows of the data set; 0: the program chooses its batches itself.
    pub fn join(client: &str, row_count: u32, evaluates: bool, variables: &[Variable]) -> Run {
        let Some(fd) = env::var("DISTTF_PROGRAM_FD").ok().and_then(|text| text.parse().ok()) else {
            fail(2, "start this program with: disttf launch --program -- COMMAND")
        };
        let mut run = Run { step: 0, slot: 0, seed: 0, fd, begins: Vec::new(), memory: [ptr::null_mut(); 2] };
        unsafe { fcntl(fd, 2, 1) }; // F_SETFD, FD_CLOEXEC
        let mut text = format!(r#"{{"protocol": 1, "client": "{client}", "evaluates": {evaluates}"#);
        if row_count > 0 { write!(text, r#", "rows": {row_count}"#).unwrap() }
        run.send(1, &(text + "}"), 0, 0.0); // HELLO
        let mut size = 0;
        for each in variables {
            let Variable { name, shape, decays } = each;
            run.send(2, &format!(r#"{{"name": "{name}", "shape": {shape:?}, "decays": {decays}}}"#), 0, 0.0); // VARIABLE
            run.begins.push((size, each.size()));
            size += each.floats();
        }
        run.send(3, "", variables.len() as u64, 0.0); // LAYOUT
        let (kind, _, fds) = run.receive();
        let [parameters, gradient] = match fds { Some(fds) if kind == 65 => fds, _ => fail(1, "WELCOME was expected") };
        for (at, (fd, protection)) in [(parameters, 1), (gradient, 3)].into_iter().enumerate() {
            let found = unsafe { mmap(ptr::null_mut(), 4 * size, protection, 1, fd, 0) }; // MAP_SHARED
            if found as isize == -1 { fail(1, "cannot map memory") }
            run.memory[at] = found.cast();
        }
        run
    }

    /// Valid until the answer.
    pub fn parameters(&self, variable: usize) -> &[f32] {
        let (begin, size) = self.begins[variable];
        unsafe { slice::from_raw_parts(self.memory[0].add(begin), size) }
    }

    pub fn gradient(&mut self, variable: usize) -> &mut [f32] {
        let (begin, size) = self.begins[variable];
        unsafe { slice::from_raw_parts_mut(self.memory[1].add(begin), size) }
    }

    /// Waits for the task. Exits if it has ended or refuses the program.
    pub fn next(&mut self) -> Request {
        loop {
            let (kind, body, _) = self.receive();
            match kind {
                66 => return Request::Initial,
                67 => return Request::Compute { rows: body.chunks_exact(4).map(|four| word(four, 0) as u32).collect() },
                68 => return Request::Evaluate,
                70 => return Request::End,
                _ => {}
            }
        }
    }

    /// The initial values have been written.
    pub fn answer(&self) { self.send(4, "", 0, 0.0) }
    /// The gradients have been written: the means over the batch's rows.
    pub fn push(&self, loss: f64) { self.send(5, "", 0, loss) }
    /// json: `{"loss": 0.1}`.
    pub fn evaluation(&self, json: &str) { self.send(6, json, 0, 0.0) }

    fn send(&self, kind: u64, body: &str, count: u64, value: f64) {
        let mut packet = b"DTP1".to_vec();
        packet.extend((kind as u32).to_le_bytes());
        packet.extend((body.len() as u64).to_le_bytes()); // body_size, number 0
        for each in [self.step, self.slot, 0, count, value.to_bits(), 0] { packet.extend(each.to_le_bytes()) }
        packet.extend(body.as_bytes());
        if unsafe { send(self.fd, packet.as_ptr().cast(), packet.len(), 0x4000) } < 0 { // MSG_NOSIGNAL
            fail(1, "the task that this program computes for has ended")
        }
    }

    fn receive(&mut self) -> (u64, Vec<u8>, Option<[c_int; 2]>) {
        let (mut data, mut extra) = (vec![0u8; 64 + 65536], [0u64; 8]);
        let mut part = Part { start: data.as_mut_ptr().cast(), size: data.len() };
        let mut packet = Packet { name: ptr::null_mut(), name_size: 0, parts: &mut part, part_count: 1,
                                  extra: extra.as_mut_ptr().cast(), extra_size: 64, flags: 0 };
        let size = unsafe { recvmsg(self.fd, &mut packet, 0) };
        if size <= 0 { fail(1, "the task that this program computes for has ended") }
        if size < 64 || &data[..4] != b"DTP1" || word(&data, 8) as isize != size - 64 { fail(1, "a packet is malformed") }
        let body = data[64..size as usize].to_vec();
        if word(&data, 4) == 71 { fail(word(&data, 12) as i32, &String::from_utf8_lossy(&body)) } // REFUSED
        [self.step, self.slot, self.seed] = [16, 24, 32].map(|at| word(&data, at) | word(&data, at + 4) << 32);
        // A cmsghdr: its size, 16 with two descriptors of 4 bytes; SOL_SOCKET and SCM_RIGHTS; the descriptors.
        let fds = (packet.extra_size >= 24 && extra[0] == 24).then(|| [extra[2] as c_int, (extra[2] >> 32) as c_int]);
        (word(&data, 4), body, fds)
    }
}

/// The 4 bytes at `at`.
fn word(bytes: &[u8], at: usize) -> u64 { u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as u64 }
