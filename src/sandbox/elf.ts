/** What an ELF file says about how it is to be loaded: `elf(5)`, the 64-bit little-endian kind alone. */
import { readFileSync } from "node:fs";

export interface Elf {
  /** `e_machine`: 62 is x86-64, 183 AArch64. */
  machine: number;
  /** The loader, PT_INTERP. */
  interpreter?: string;
  /** DT_NEEDED: names of libraries, or paths. */
  needed: string[];
  /** DT_RPATH and DT_RUNPATH as they stand there, `$ORIGIN` and all. */
  rpath: string[];
  runpath: string[];
}

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const DT_RPATH = 15;
const DT_RUNPATH = 29;

interface Segment {
  type: number;
  offset: number;
  address: number;
  size: number;
}

/** Undefined for what is no such file, or a broken one. @throws what reading the file throws */
export function readElf(path: string): Elf | undefined {
  const file = readFileSync(path);
  try {
    return parse(file);
  } catch (error) {
    if (error instanceof RangeError) return undefined; // an offset beyond the end
    throw error;
  }
}

function parse(file: Buffer): Elf | undefined {
  if (file.length < 64 || file.readUInt32BE(0) !== 0x7f454c46 || file.readUInt16BE(4) !== 0x0201)
    return undefined;
  const segments = segmentsOf(file);
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  const dynamic = dynamicOf(file, segments);
  const first = (tag: number) => dynamic.find((entry) => entry.tag === tag)?.value;
  const strings = fileOffset(first(DT_STRTAB) ?? 0, segments);
  const texts = (tag: number) =>
    strings === undefined
      ? []
      : dynamic.filter((entry) => entry.tag === tag).map(({ value }) => text(file, strings + value));
  const folders = (tag: number) => texts(tag).flatMap((list) => list.split(":").filter(Boolean));
  return {
    machine: file.readUInt16LE(18),
    interpreter: interpreter && text(file, interpreter.offset),
    needed: texts(DT_NEEDED),
    rpath: folders(DT_RPATH),
    runpath: folders(DT_RUNPATH),
  };
}

function segmentsOf(file: Buffer): Segment[] {
  const start = word(file, 32);
  const size = file.readUInt16LE(54);
  return Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const at = start + index * size;
    return {
      type: file.readUInt32LE(at),
      offset: word(file, at + 8),
      address: word(file, at + 16),
      size: word(file, at + 32),
    };
  });
}

function dynamicOf(file: Buffer, segments: Segment[]): { tag: number; value: number }[] {
  const segment = segments.find(({ type }) => type === PT_DYNAMIC);
  if (!segment) return [];
  return Array.from({ length: Math.floor(segment.size / 16) }, (_, index) => {
    const at = segment.offset + index * 16;
    return { tag: word(file, at), value: word(file, at + 8) };
  });
}

function fileOffset(address: number, segments: Segment[]): number | undefined {
  const segment = segments.find(
    ({ type, address: start, size }) => type === PT_LOAD && address >= start && address < start + size,
  );
  return segment && address - segment.address + segment.offset;
}

function word(file: Buffer, at: number): number {
  return Number(file.readBigUInt64LE(at));
}

function text(file: Buffer, at: number): string {
  const end = file.indexOf(0, at);
  if (at >= file.length || end < 0) throw new RangeError("a text without an end");
  return file.toString("utf8", at, end);
}
