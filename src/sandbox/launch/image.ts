/**
 * A launch image: a static ELF program, made anew for what it has to do, that walks a list of system calls and becomes the program.
 *
 * Why not this binary itself: a restricted thread of a running Bun shares its memory with unrestricted ones, so restricting has to be
 * followed by an exec; and a new user namespace can be entered only by a process with one thread (`unshare(2)`), which Bun never has.
 * The image has one thread, no libc, no heap and no input but its argv, and costs a fraction of a millisecond instead of Bun's start.
 * All decisions are taken here, in TypeScript; the machine code below only does what the table says.
 */
import type { Argument, Pointing, Step } from "./step.ts";
import { type Machine, numberOf } from "./syscalls.ts";

/** What a failing step prints before its label, unless it is to print something that nobody else can. */
export const failurePrefix = "ollie: sandbox: cannot ";

/*
 * The code. A table entry is twelve 64-bit words: number, six arguments, least and most of what may be returned, text and its length,
 * exit status (0: the errno). A negative number stands for execve(argv[1], &argv[1], envp).
 */
const code: Record<Machine, string> = {
  x64: `
    488d1d81000000  lea  table(%rip), %rbx
    4c8b3424        mov  (%rsp), %r14             argc
    4c8d6c2410      lea  16(%rsp), %r13           &argv[1]
    4e8d74f410      lea  16(%rsp,%r14,8), %r14    envp
    488b03          next: mov (%rbx), %rax
    488b7b08        mov  8(%rbx), %rdi
    488b7310        mov  16(%rbx), %rsi
    488b5318        mov  24(%rbx), %rdx
    4c8b5320        mov  32(%rbx), %r10
    4c8b4328        mov  40(%rbx), %r8
    4c8b4b30        mov  48(%rbx), %r9
    4885c0          test %rax, %rax
    790f            jns  call
    b83b000000      mov  $59, %eax                execve
    498b7d00        mov  (%r13), %rdi
    4c89ee          mov  %r13, %rsi
    4c89f2          mov  %r14, %rdx
    0f05            call: syscall
    483b4338        cmp  56(%rbx), %rax
    7c0c            jl   fail
    483b4340        cmp  64(%rbx), %rax
    7f06            jg   fail
    4883c360        add  $96, %rbx
    ebbd            jmp  next
    f7d8            fail: neg %eax
    448b6358        mov  88(%rbx), %r12d
    4585e4          test %r12d, %r12d
    440f44e0        cmove %eax, %r12d
    b801000000      mov  $1, %eax                 write
    bf02000000      mov  $2, %edi
    488b7348        mov  72(%rbx), %rsi
    488b5350        mov  80(%rbx), %rdx
    0f05            syscall
    b8e7000000      mov  $231, %eax               exit_group
    4489e7          mov  %r12d, %edi
    0f05            syscall
    0000000000      (the table begins at a multiple of 8)`,
  arm64: `
    53040010  adr  x19, table
    f40340f9  ldr  x20, [sp]               argc
    f5430091  add  x21, sp, #16            &argv[1]
    f66f348b  add  x22, sp, x20, lsl #3
    d6420091  add  x22, x22, #16           envp
    680240f9  next: ldr x8, [x19]
    608640a9  ldp  x0, x1, [x19, #8]
    628e41a9  ldp  x2, x3, [x19, #24]
    649642a9  ldp  x4, x5, [x19, #40]
    a800f8b6  tbz  x8, #63, call
    a81b80d2  mov  x8, #221                execve
    a00240f9  ldr  x0, [x21]
    e10315aa  mov  x1, x21
    e20316aa  mov  x2, x22
    010000d4  call: svc #0
    69aa43a9  ldp  x9, x10, [x19, #56]
    1f0009eb  cmp  x0, x9
    ab000054  b.lt fail
    1f000aeb  cmp  x0, x10
    6c000054  b.gt fail
    73820191  add  x19, x19, #96
    f0ffff17  b    next
    f403004b  fail: neg w20, w0
    695a40b9  ldr  w9, [x19, #88]
    3f010071  cmp  w9, #0
    9402891a  csel w20, w20, w9, eq
    080880d2  mov  x8, #64                 write
    400080d2  mov  x0, #2
    618a44a9  ldp  x1, x2, [x19, #72]
    010000d4  svc  #0
    c80b80d2  mov  x8, #94                 exit_group
    e003142a  mov  w0, w20
    010000d4  svc  #0
    00000000  (the table begins at a multiple of 8)`,
};

const entrySize = 12 * 8;
/** Address at which the file is mapped: above what `vm.mmap_min_addr` forbids, as linkers choose it. */
const base = 0x400000;
const elfHeader = 64;
const programHeader = 56;
const codeAt = elfHeader + 2 * programHeader;
const endsInLineFeed = "\n";

/**
 * The ELF file that does these steps; `elf(5)`.
 * @param prefix what a failing step prints before its label
 */
export function buildImage(steps: readonly Step[], machine: Machine, prefix = failurePrefix): Uint8Array {
  const program = machineCode(machine);
  const tableAt = codeAt + program.length;
  const data = new Data(base + tableAt + steps.length * entrySize);
  const table = new DataView(new ArrayBuffer(steps.length * entrySize));
  steps.forEach((step, index) => {
    const words = entry(step, machine, data, prefix);
    words.forEach((word, place) => {
      table.setBigInt64(index * entrySize + place * 8, BigInt.asIntN(64, word), true);
    });
  });
  const size = tableAt + table.byteLength + data.size;
  const image = new Uint8Array(size);
  writeHeaders(new DataView(image.buffer), machine, size);
  image.set(program, codeAt);
  image.set(new Uint8Array(table.buffer), tableAt);
  data.writeTo(image.subarray(tableAt + table.byteLength));
  return image;
}

function machineCode(machine: Machine): Uint8Array {
  const digits = [...code[machine].matchAll(/^\s*([0-9a-f]+) /gm)].map(([, hex]) => hex);
  return Uint8Array.fromHex(digits.join(""));
}

function entry(
  { call, args, returns, label, status = 0 }: Step,
  machine: Machine,
  data: Data,
  prefix: string,
): bigint[] {
  const least = returns?.least ?? 0n;
  const most = returns?.most ?? 2n ** 63n - 1n;
  const message = new TextEncoder().encode(prefix + label + endsInLineFeed);
  const words = [BigInt(typeof call === "number" ? call : call === "exec" ? -1 : numberOf(call, machine))];
  for (let place = 0; place < 6; place++) words.push(data.word(args[place] ?? 0));
  words.push(least, most, data.put(message), BigInt(message.length), BigInt(status));
  return words;
}

/** What entries point to. */
class Data {
  readonly #parts: Uint8Array[] = [];
  readonly #known = new Map<string, bigint>();
  size = 0;

  constructor(private readonly address: number) {}

  word(argument: Argument): bigint {
    if (typeof argument === "number" || typeof argument === "bigint") return BigInt(argument);
    if (typeof argument === "string") return this.put(new TextEncoder().encode(`${argument}\0`));
    if (argument instanceof Uint8Array) return this.put(argument);
    return this.put(this.#structure(argument));
  }

  /** Bytes that are there already are not put twice. */
  put(bytes: Uint8Array): bigint {
    const key = Buffer.from(bytes).toString("latin1");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const address = BigInt(this.address + this.size);
    this.#parts.push(bytes);
    this.size += aligned(bytes.length);
    this.#known.set(key, address);
    return address;
  }

  writeTo(target: Uint8Array): void {
    let at = 0;
    for (const part of this.#parts) {
      target.set(part, at);
      at += aligned(part.length);
    }
  }

  #structure({ fields }: Pointing): Uint8Array {
    const words = new DataView(new ArrayBuffer(fields.length * 8));
    fields.forEach((field, place) => {
      words.setBigInt64(place * 8, BigInt.asIntN(64, this.word(field)), true);
    });
    return new Uint8Array(words.buffer);
  }
}

function aligned(size: number): number {
  return (size + 7) & ~7;
}

const PT_LOAD = 1;
const PT_GNU_STACK = 0x6474e551;
const readExecute = 5;
const readWrite = 6;

function writeHeaders(view: DataView, machine: Machine, size: number): void {
  view.setUint32(0, 0x7f454c46);
  view.setUint32(4, 0x02010100); // 64 bits, little endian, version 1
  view.setUint16(16, 2, true); // ET_EXEC
  view.setUint16(18, machine === "x64" ? 62 : 183, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(24, BigInt(base + codeAt), true);
  view.setBigUint64(32, BigInt(elfHeader), true);
  view.setUint16(52, elfHeader, true);
  view.setUint16(54, programHeader, true);
  view.setUint16(56, 2, true);
  segment(elfHeader, PT_LOAD, readExecute, base, size);
  segment(elfHeader + programHeader, PT_GNU_STACK, readWrite, 0, 0);

  function segment(at: number, type: number, flags: number, address: number, length: number): void {
    view.setUint32(at, type, true);
    view.setUint32(at + 4, flags, true);
    view.setBigUint64(at + 16, BigInt(address), true);
    view.setBigUint64(at + 24, BigInt(address), true);
    view.setBigUint64(at + 32, BigInt(length), true);
    view.setBigUint64(at + 40, BigInt(length), true);
    view.setBigUint64(at + 48, 4096n, true);
  }
}
