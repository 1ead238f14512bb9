/** Any message, for properties. */
import fc from "fast-check";
import * as m from "../../src/ninep/messages.ts";

const u8 = fc.integer({ min: 0, max: 0xff });
const u16 = fc.integer({ min: 0, max: 0xffff });
const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
/** The codec's form of a 64-bit field: a bigint only where a number would not be exact. */
const u64 = fc
  .bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn })
  .map((value) => (value <= Number.MAX_SAFE_INTEGER ? Number(value) : value));
const string = fc
  .string({ unit: "grapheme", maxLength: 40 })
  .filter((text) => text.isWellFormed() && !text.includes("\0"));
const data = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const qid = fc.record({ type: u8, vers: u32, path: u64 });
const dir = fc.record({
  type: u16,
  dev: u32,
  qid,
  mode: u32,
  atime: u32,
  mtime: u32,
  length: u64,
  name: string,
  uid: string,
  gid: string,
  muid: string,
});

const fields: Record<m.MessageType, Record<string, fc.Arbitrary<unknown>>> = {
  [m.Tversion]: { msize: u32, version: string },
  [m.Rversion]: { msize: u32, version: string },
  [m.Tauth]: { afid: u32, uname: string, aname: string },
  [m.Rauth]: { aqid: qid },
  [m.Tattach]: { fid: u32, afid: u32, uname: string, aname: string },
  [m.Rattach]: { qid },
  [m.Rerror]: { ename: string },
  [m.Tflush]: { oldtag: u16 },
  [m.Rflush]: {},
  [m.Twalk]: { fid: u32, newfid: u32, wname: fc.array(string, { maxLength: 16 }) },
  [m.Rwalk]: { wqid: fc.array(qid, { maxLength: 16 }) },
  [m.Topen]: { fid: u32, mode: u8 },
  [m.Ropen]: { qid, iounit: u32 },
  [m.Tcreate]: { fid: u32, name: string, perm: u32, mode: u8 },
  [m.Rcreate]: { qid, iounit: u32 },
  [m.Tread]: { fid: u32, offset: u64, count: u32 },
  [m.Rread]: { data },
  [m.Twrite]: { fid: u32, offset: u64, data },
  [m.Rwrite]: { count: u32 },
  [m.Tclunk]: { fid: u32 },
  [m.Rclunk]: {},
  [m.Tremove]: { fid: u32 },
  [m.Rremove]: {},
  [m.Tstat]: { fid: u32 },
  [m.Rstat]: { stat: dir },
  [m.Twstat]: { fid: u32, stat: dir },
  [m.Rwstat]: {},
};

/** Every type is as likely as every other. */
export const message = fc.oneof(
  ...Object.entries(fields).map(([type, rest]) =>
    fc.record({ type: fc.constant(Number(type)), tag: u16, ...rest }),
  ),
) as unknown as fc.Arbitrary<m.Message>;

/** Requests that hit: few fids and tags, names and modes that exist. */
export const request = (() => {
  const fid = fc.integer({ min: 0, max: 4 });
  const name = fc.constantFrom("hello", "dir", "a", "log", "new", "..", "nothing", "blocked");
  const narrow: Record<string, fc.Arbitrary<unknown>> = {
    fid,
    newfid: fid,
    afid: fc.constant(m.NOFID),
    oldtag: fc.integer({ min: 0, max: 8 }),
    wname: fc.array(name, { maxLength: 3 }),
    name,
    mode: fc.constantFrom(0, 1, 2, 3, 0x10, 0x11, 0x40),
    perm: fc.constantFrom(0o644, 0x800001ed),
    count: fc.constantFrom(0, 10, 100, 8192, 0xffff_ffff),
    aname: fc.constant(""),
    stat: fc
      .record(
        { name, length: fc.constantFrom(0, 3, 2 ** 40), mode: fc.constant(0o600) },
        { requiredKeys: [] },
      )
      .map((change) => ({ ...m.dontTouch, ...change })),
  };
  const types = Object.keys(fields)
    .map(Number)
    .filter((type) => type % 2 === 0 && type !== m.Tversion);
  return fc.oneof(
    ...types.map((type) => {
      const own = Object.keys(fields[type as m.MessageType]);
      const chosen = own.map((key) => [key, narrow[key] ?? fields[type as m.MessageType][key]!]);
      return fc.record({
        type: fc.constant(type),
        tag: fc.integer({ min: 0, max: 8 }),
        ...Object.fromEntries(chosen),
      });
    }),
  ) as unknown as fc.Arbitrary<m.TMessage>;
})();
