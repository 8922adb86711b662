// The program's side of docs/program_protocol.md, for Node 18 or later on Linux (64 bits). Node itself can neither
// receive descriptors nor map memory, so the package koffi calls these functions of libc.
import koffi from 'koffi';

const HELLO = 1, VARIABLE = 2, LAYOUT = 3, INITIAL = 4, GRADIENT = 5, EVALUATION = 6;
const WELCOME = 65, GIVE_INITIAL = 66, COMPUTE = 67, EVALUATE = 68, END = 70, REFUSED = 71;

const libc = koffi.load(null); // the library that Node itself uses
const Part = koffi.struct({ start: 'void *', size: 'size_t' });
const Packet = koffi.struct({
  name: 'void *', nameSize: 'uint32_t', parts: koffi.pointer(Part), partCount: 'size_t', extra: 'void *',
  extraSize: 'size_t', flags: 'int',
});
const recvmsg = libc.func('recvmsg', 'intptr_t', ['int', koffi.pointer(Packet), 'int']);
const send = libc.func('intptr_t send(int fd, void *data, size_t size, int flags)');
const mmap = libc.func('intptr_t mmap(void *at, size_t size, int protection, int flags, int fd, int64_t offset)');
const fcntl = libc.func('int fcntl(int fd, int command, ...)');
const F_SETFD = 2, FD_CLOEXEC = 1, MSG_NOSIGNAL = 0x4000, PROT_READ = 1, PROT_WRITE = 2, MAP_SHARED = 1;

function fail(sentence, code) {
  console.error(`disttf: ${sentence}`);
  process.exit(code);
}

export class Run {
  #fd; #variables; #writeInitial; #evaluate;
  #step = 0n; #slot = 0n;
  #packet = Buffer.alloc(64 + 65536); #extra = Buffer.alloc(64);

  // Joins the run.
  // client: name and version. rows: of the data set; left out: the program chooses its batches itself.
  // variables: {name, shape, decays} each; shape [] is one number. A variable has at most 2^30 numbers, because Node 18
  // has no larger view of memory. This adds two Float32Arrays: `parameters`, where a write is a segmentation fault, and
  // `gradient`.
  // writeInitial(): writes initial values to the gradients. evaluate(): returns {loss: 0.1}; may be left out.
  constructor({ client, rows, variables, writeInitial, evaluate }) {
    [this.#variables, this.#writeInitial, this.#evaluate] = [variables, writeInitial, evaluate];
    if (!/^\d+$/.test(process.env.DISTTF_PROGRAM_FD ?? '')) {
      fail('start this program with: disttf launch --program -- COMMAND', 2);
    }
    this.#fd = Number(process.env.DISTTF_PROGRAM_FD);
    fcntl(this.#fd, F_SETFD, 'int', FD_CLOEXEC);
    this.#send(HELLO, { protocol: 1, client, rows, evaluates: evaluate !== undefined });
    const sizes = variables.map(({ shape }) => shape.reduce((product, each) => product * each, 1));
    const begins = [];
    let size = 0;
    variables.forEach(({ name, shape, decays }, at) => {
      this.#send(VARIABLE, { name, shape, decays });
      begins.push(4 * size);
      size += Math.ceil(sizes[at] / 16) * 16;
    });
    this.#send(LAYOUT, undefined, { count: variables.length });
    const { kind, descriptors } = this.#receive();
    if (kind !== WELCOME || descriptors === undefined) fail('WELCOME was expected', 1);
    const [parameters, gradient] = [PROT_READ, PROT_READ | PROT_WRITE].map((protection, at) => {
      const start = mmap(null, 4 * size, protection, MAP_SHARED, descriptors[at], 0);
      if (start === -1) fail('cannot map memory', 1);
      return start;
    });
    const view = (start, at) => new Float32Array(koffi.view(BigInt(start + begins[at]), 4 * sizes[at]));
    variables.forEach((variable, at) => {
      [variable.parameters, variable.gradient] = [view(parameters, at), view(gradient, at)];
    });
  }

  // Yields {step, slot, seed, rows} for each batch: two numbers, a BigInt and a Uint32Array. Answer each with push().
  // When the loop ends, the run is over, and the parameters are the result.
  *[Symbol.iterator]() {
    for (;;) {
      const { kind, seed, body } = this.#receive();
      if (kind === END) return;
      if (kind === COMPUTE) {
        const rows = new Uint32Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.length));
        yield { step: Number(this.#step), slot: Number(this.#slot), seed, rows };
      } else if (kind === GIVE_INITIAL) {
        this.#writeInitial();
        this.#send(INITIAL);
      } else if (kind === EVALUATE) {
        this.#send(EVALUATION, this.#evaluate?.());
      }
    }
  }

  // Says that the gradients have been written: the means over the batch's rows. numbers: up to 32 more, {norm: 0.1}.
  push(loss, numbers) {
    this.#send(GRADIENT, numbers, { value: loss });
  }

  #send(kind, json, { count = 0, value = 0 } = {}) {
    const body = Buffer.from(json === undefined ? '' : JSON.stringify(json));
    const head = Buffer.alloc(64);
    head.write('DTP1');
    head.writeUInt16LE(kind, 4);
    head.writeUInt32LE(body.length, 8);
    head.writeBigUInt64LE(this.#step, 16); // step and slot are those of the question
    head.writeBigUInt64LE(this.#slot, 24);
    head.writeBigUInt64LE(BigInt(count), 40);
    head.writeDoubleLE(value, 48);
    const packet = Buffer.concat([head, body]);
    if (send(this.#fd, packet, packet.length, MSG_NOSIGNAL) < 0) {
      fail('the task that this program computes for has ended', 1);
    }
  }

  // Receives one packet. Blocks: no other code of the program runs meanwhile. The body is valid until the next call.
  #receive() {
    this.#extra.fill(0);
    const size = recvmsg(this.#fd, {
      name: null, nameSize: 0, parts: [{ start: this.#packet, size: this.#packet.length }], partCount: 1,
      extra: this.#extra, extraSize: this.#extra.length, flags: 0,
    }, 0);
    if (size <= 0) fail('the task that this program computes for has ended', 1);
    const head = this.#packet;
    if (size < 64 || head.toString('latin1', 0, 4) !== 'DTP1' || head.readUInt32LE(8) !== size - 64) {
      fail('a packet is malformed', 1);
    }
    const kind = head.readUInt16LE(4), body = head.subarray(64, size);
    if (kind === REFUSED) fail(body.toString(), head.readUInt32LE(12));
    [this.#step, this.#slot] = [head.readBigUInt64LE(16), head.readBigUInt64LE(24)];
    // A cmsghdr: its size, 16 with two descriptors of 4 bytes; SOL_SOCKET and SCM_RIGHTS; the descriptors.
    const has = this.#extra.readBigUInt64LE(0) === 24n;
    const descriptors = has ? [this.#extra.readInt32LE(16), this.#extra.readInt32LE(20)] : undefined;
    return { kind, seed: head.readBigUInt64LE(32), body, descriptors };
  }
}
