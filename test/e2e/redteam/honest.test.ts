/**
 * Honest work in the sandbox that holds where nobody has said anything: what programmers do all day, with the tool chains of this host. A
 * cage that keeps people from their work is one that they will do without.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, cpSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { lacks } from "../../needs.ts";
import { type Host, hosts, Victim } from "./victim.ts";

const top = join(import.meta.dir, "../../..");

/** Of programs that the user can run, who may be another one than this process. */
function has(...programs: string[]): boolean {
  return programs.every((program) => Bun.which(program, { PATH: "/usr/local/bin:/usr/bin:/bin" }) !== null);
}

interface Task {
  what: string;
  needs?: string[];
  /** Large ones that not every host has: CI installs all others. */
  seldom?: boolean;
  command: string;
  /** What the result is to hold. */
  gives: string | RegExp;
}

const commit = "git add -A && git commit -qm";

const tasks: Task[] = [
  {
    what: "git: a repository, branches, merges, a stash",
    needs: ["git"],
    command: `git init -q -b main . && echo 1 >f && ${commit} one && git switch -qc b && echo 2 >f && ${commit} two && git switch -q main && git merge -q b && echo 3 >f && git stash -q && git stash pop -q && git branch -d b && git tag v1 && git log --oneline | wc -l && git gc -q && git status -s`,
    gives: /^.*\n2\n M f/s,
  },
  {
    what: "git: a work tree beside, and one within",
    needs: ["git"],
    command: `git init -q -b main . && echo 1 >f && ${commit} one && git worktree add -q in -b in && cd in && echo 2 >g && ${commit} two && git -C .. worktree list | wc -l && git -C .. worktree remove --force in && echo gone`,
    gives: "2\ngone\n",
  },
  {
    what: "git: a clone, a pull, a push",
    needs: ["git"],
    command: `git init -q --bare o.git && git clone -q o.git c 2>/dev/null && cd c && echo 1 >f && ${commit} one && git push -q origin HEAD && cd .. && git clone -q o.git d && cd d && git pull -q && cat f`,
    gives: "1\n",
  },
  {
    what: "git: rebase, cherry-pick, revert, bisect",
    needs: ["git"],
    command: `git init -q -b main . && for i in 1 2 3 4; do echo $i >f$i; ${commit} $i; done && git switch -qc b HEAD~2 && echo b >b && ${commit} b && git rebase -q main && git branch c HEAD && git reset -q --hard HEAD~1 && git cherry-pick c >/dev/null && git revert --no-edit HEAD >/dev/null && git bisect start HEAD HEAD~3 >/dev/null && git bisect good >/dev/null && git bisect reset >/dev/null 2>&1 && git commit -q --amend -m new && echo done`,
    gives: "done",
  },
  {
    what: "shell: here-documents, temporary files, pipes, background, timeout",
    command:
      "cat <<END\nhere\nEND\nf=$(mktemp) && d=$(mktemp -d) && echo x >$f && mv $f $d/ && ls $d | wc -l; sort < <(printf '2\\n1\\n') | paste -sd,; (sleep 0.1; echo late) & wait; timeout 5 echo in time; echo a | tee /dev/stderr 2>&1 >/dev/null; seq 3 | xargs -I{} echo {}",
    gives: /here\n1\n1,2\nlate\nin time\na\n1\n2\n3/,
  },
  {
    what: "shell: sed -i, find -exec, grep -r, chmod, ln, rename, touch -d",
    command:
      "mkdir -p a/b && echo old >a/b/f && sed -i s/old/new/ a/b/f && find . -name f -exec cat {} + && grep -rl new . && chmod 755 a/b/f && ln -s f a/b/l && ln a/b/f a/b/h && mv a/b c && cat c/l && touch -d 2001-01-01 c/f && stat -c %y c/f | cut -c1-4 && rm -r c && ls -A a | wc -l",
    gives: "new\n./a/b/f\nnew\n2001\n0\n",
  },
  {
    what: "shell: between the temporary and the working folder",
    command:
      "echo x >$TMPDIR/f && mv $TMPDIR/f . && cp f $TMPDIR/h && cat $TMPDIR/h && install -m 755 f g && rsync --version >/dev/null 2>&1; cp -a . $TMPDIR/copy && ls $TMPDIR/copy | wc -l",
    gives: "x\n2\n",
  },
  {
    what: "terminals, devices, proc",
    command:
      "echo x >/dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; script -qec 'tty -s && echo terminal' /dev/null; nproc >/dev/null && cat /proc/self/comm && df . >/dev/null && ps -o comm= -p $$; id -u >/dev/null && getconf PAGE_SIZE >/dev/null; ulimit -n",
    gives: /4\n4\nterminal\r?\ncat\n/,
  },
  {
    what: "sockets of one's own",
    needs: ["perl"],
    command:
      'perl -MSocket -e \'for my $p ("s", "$ENV{TMPDIR}/s", "/tmp/s") { socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un($p)) or die $!; listen(S, 1); socket(C, AF_UNIX, SOCK_STREAM, 0); connect(C, sockaddr_un($p)) or die "$p: $!"; print "ok " }\'',
    gives: "ok ok ok",
  },
  {
    what: "a server on the loopback",
    needs: ["perl"],
    command:
      "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die $!; listen(S, 1); my ($p) = sockaddr_in(getsockname(S)); if (fork) { accept(C, S); print <C> } else { socket(C, AF_INET, SOCK_STREAM, 0); connect(C, sockaddr_in($p, INADDR_LOOPBACK)) or die $!; print C \"over TCP\\n\" }'",
    gives: "over TCP",
  },
  {
    what: "names",
    needs: ["getent"],
    command: "getent hosts localhost | wc -l; getent passwd 0 | cut -d: -f1",
    gives: "1\nroot\n",
  },
  {
    what: "tar, gzip, zip, checksums",
    needs: ["tar", "gzip"],
    command:
      "mkdir d && echo x >d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && gzip -k d/f && gunzip -c d/f.gz && sha256sum d/f | cut -c1-4",
    gives: "x\n73cb\n",
  },
  {
    what: "perl, sqlite3, ssh-keygen, openssl",
    needs: ["perl", "sqlite3", "ssh-keygen"],
    command:
      "perl -MFile::Temp -e 'my $t = File::Temp->new; print \"perl\\n\"'; sqlite3 db 'create table t(x); insert into t values (7); select * from t'; if getent passwd $(id -u) >/dev/null; then ssh-keygen -q -t ed25519 -N '' -f key; else : >key.pub; fi; ls key.pub; HOME=$PWD openssl rand -hex 2 | wc -c",
    gives: "perl\n7\nkey.pub\n5\n",
  },
  {
    what: "C with make",
    needs: ["gcc", "make"],
    command:
      "printf '#include <stdio.h>\\nint main(void){puts(\"made\");return 0;}\\n' >m.c && printf 'm: m.c\\n\\tgcc -O1 -pipe -o m m.c\\ntest: m\\n\\t./m\\n.PHONY: test\\n' >Makefile && make -sj2 test",
    gives: "made\n",
  },
  {
    what: "C++ with CMake",
    needs: ["cmake", "g++", "make"],
    command:
      "printf '#include <iostream>\\nint main(){std::cout << \"built\\\\n\";}\\n' >m.cc && printf 'cmake_minimum_required(VERSION 3.10)\\nproject(m CXX)\\nadd_executable(m m.cc)\\nenable_testing()\\nadd_test(NAME m COMMAND m)\\n' >CMakeLists.txt && cmake -S . -B build >/dev/null && cmake --build build >/dev/null && (cd build && ctest -Q && ./m)",
    gives: "built\n",
  },
  {
    what: "a shared library, a debugger",
    needs: ["gcc", "gdb"],
    command:
      "echo 'int f(void){return 7;}' >l.c && gcc -shared -fPIC -g -o libl.so l.c && printf 'int f(void);int main(void){return f();}' >m.c && gcc -g -o m m.c -L. -ll -Wl,-rpath,$PWD && ./m; echo $?; gdb -batch -ex 'break f' -ex run -ex finish ./m 2>&1 | grep -c 'Value returned is .* = 7'",
    gives: "7\n1\n",
  },
  {
    what: "strace of a program of one's own",
    needs: ["strace"],
    command:
      "strace -f -e trace=openat -o out true; grep -c openat out | grep -v ^0 >/dev/null && echo traced",
    gives: "traced",
  },
  {
    what: "node, with a local package and tests",
    needs: ["node", "npm"],
    command: `mkdir -p lib app && cd lib && printf '{"name":"lib","version":"1.0.0","main":"i.js"}' >package.json && echo 'module.exports = () => 42' >i.js && cd ../app && npm init -y >/dev/null && npm install --offline --no-audit --no-fund ../lib >/dev/null 2>err || cat err; echo 'require("node:test")("t", () => require("node:assert").equal(require("lib")(), 42))' >t.test.js && npm pkg set scripts.test="node --test" && npm test 2>&1 | grep -E '^(# |ℹ )pass'; node -e 'new (require("worker_threads").Worker)("console.log(1 + 1)", { eval: true })'`,
    gives: /pass 1\n2\n/,
  },
  {
    what: "npm: a package of one's own, packed and run",
    needs: ["npm", "node"],
    command: `printf '{"name":"tool","version":"1.0.0","bin":{"tool":"t.js"}}' >package.json && printf '#!/usr/bin/env node\\nconsole.log("ran")\\n' >t.js && npm pack -s && mkdir u && cd u && npm init -y >/dev/null && npm install -s --offline --no-audit ../tool-1.0.0.tgz && npx --no-install tool`,
    gives: "ran\n",
  },
  {
    what: "a server of node, with a child and a watch",
    needs: ["node"],
    command: `node -e 'const h=require("http").createServer((q,r)=>r.end("served\\n")).listen(0,"127.0.0.1",()=>{require("child_process").exec("curl -s http://127.0.0.1:"+h.address().port+" || wget -qO- http://127.0.0.1:"+h.address().port,(e,o)=>{process.stdout.write(o);const w=require("fs").watch(".",()=>{console.log("seen");w.close();h.close()});require("fs").writeFileSync("f","x")})})'`,
    gives: "served\nseen\n",
  },
  {
    what: "python: a virtual environment, tests, processes",
    needs: ["python3"],
    command:
      "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)' && printf 'import unittest, multiprocessing, tempfile, sqlite3\\ndef f(x): return x * x\\nclass T(unittest.TestCase):\\n  def test(self):\\n    with multiprocessing.Pool(2) as p: self.assertEqual(p.map(f, [1, 2]), [1, 4])\\n    tempfile.TemporaryFile().write(b\"x\")\\n    l = multiprocessing.Lock(); l.acquire(); l.release()\\n' >test_t.py && /usr/bin/python3 -m unittest 2>&1 | tail -n 1",
    gives: "True\nOK\n",
  },
  {
    what: "java",
    needs: ["java", "javac"],
    seldom: true,
    command:
      'printf \'class M { public static void main(String[] a) throws Exception { java.nio.file.Files.createTempFile("x", "y"); System.out.println("java"); } }\' >M.java && javac M.java && java M',
    gives: "java\n",
  },
  {
    what: "go, with tests",
    needs: ["go"],
    command:
      "go mod init example.com/m 2>/dev/null && printf 'package m\\nfunc F() int { return 7 }\\n' >m.go && printf 'package m\\nimport \"testing\"\\nfunc TestF(t *testing.T) { if F() != 7 { t.Fatal() } }\\n' >m_test.go && GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off go test ./... && go vet ./... && go build ./... && echo built",
    gives: /ok\s+example.com\/m.*\nbuilt\n/,
  },
  {
    what: "cargo, with tests",
    needs: ["cargo"],
    seldom: true,
    command:
      "cargo init -q --lib --vcs none --name m . && cargo test -q --offline 2>&1 | grep 'test result' | head -n 1 && cargo build -q --offline && echo built",
    gives: /ok\. 1 passed.*\nbuilt\n/,
  },
  {
    what: "caches, of programs that nobody has heard of as well",
    command:
      "mkdir -p ~/.cache/some-new-tool/v1 && echo x >~/.cache/some-new-tool/v1/f && cat ~/.cache/some-new-tool/v1/f && touch ~/.cache/one-file && rm -r ~/.cache/some-new-tool ~/.cache/one-file && ls ~/.cache >/dev/null && echo cached",
    gives: "x\ncached\n",
  },
  {
    what: "the cache of npm",
    needs: ["npm"],
    command:
      "echo x >~/.npm/some-file && rm ~/.npm/some-file && npm config get cache >/dev/null && echo cached",
    gives: "cached\n",
  },
  {
    what: "the tree: state, plan, a sub-session",
    command:
      "o read state && echo '- [ ] x' | ollie-9p write session/$OLLIE_SESSION/plan && ollie-9p read session/$OLLIE_SESSION/plan",
    gives: "calling: shell\n- [ ] x\n",
  },
  {
    what: "busybox, as a shell with few means",
    needs: ["busybox"],
    command:
      "busybox sh -c 'mkdir d && cd d && echo hi | busybox tee f | busybox md5sum | busybox cut -c1-4'",
    gives: /^[0-9a-f]{4}\n/,
  },
  {
    what: "man, less, tmux, which a terminal would do",
    needs: ["tmux"],
    command:
      "tmux -f /dev/null new-session -d 'echo in tmux >t; sleep 5' && for i in $(seq 50); do [ -s t ] && break; sleep 0.05; done; cat t; tmux kill-server",
    gives: "in tmux\n",
  },
];

/** What shows whether a host with less does as well. */
const few = /^(git: a repo|git: a work|shell|python|C with|caches)/;

describe.each(Object.entries(hosts as Record<string, Host>))("%s host", (name, host) => {
  let victim: Victim;
  let folder: string;
  let session: string;
  beforeAll(async () => {
    victim = await Victim.start(host);
    await victim.server.run([
      "sh",
      "-c",
      "git config --global user.email a@b.c; git config --global user.name N",
    ]);
  });
  beforeEach(async () => {
    folder = join(victim.work, crypto.randomUUID().slice(0, 8));
    mkdirSync(folder);
    victim.server.give(folder);
    session = await victim.session(`cwd=${folder}`);
  });
  afterAll(() => victim.stop());

  for (const { what, needs = [], seldom, command, gives } of tasks) {
    if (seldom && !has(...needs)) {
      console.warn(`not tried, since it is not here: ${what}`);
      continue;
    }
    if (name !== "full" && !few.test(what)) continue;
    // Without namespaces nothing new can be made beside what is ollie's own (SANDBOX.md).
    if (host.without && what.startsWith("caches")) continue;
    test.skipIf(lacks(needs.join(" and "), has(...needs)))(what, async () => {
      const result = await victim.run(command, session);
      expect(result).toMatch(gives);
      expect(result).not.toMatch(/denied|read-only file system|not permitted|\[exit/i);
    });
  }

  if (name !== "full") return;

  test.skipIf(lacks("git", has("git")))(
    "git: in a work tree that the user has made, in a folder of it, and with a submodule",
    async () => {
      const made = await victim.server.run([
        "sh",
        "-ec",
        `cd ${folder}; git init -q m; cd m; mkdir -p deep; echo 1 >deep/f; git add -A; git commit -qm one; git worktree add -q ../t
       git init -q ../s; (cd ../s; git commit -qm s --allow-empty); git -c protocol.file.allow=always submodule -q add ../s sub; git commit -qm sub`,
      ]);
      expect(made).toMatchObject({ status: 0 });
      for (const where of ["t", "t/deep", "m", "m/deep", "m/sub"]) {
        const own = await victim.session(`cwd=${join(folder, where)}`);
        const result = await victim.run(
          "echo x >>g && git add -A . && git commit -qm more && git switch -qc b$RANDOM && git log --oneline | wc -l && git status -s",
          own,
        );
        expect(`${where}: ${result}`).toMatch(/^[\w/]+: \d+\n$/);
      }
    },
  );

  test("the home folder itself as the working folder, with more in it than a process may have open", async () => {
    await victim.server.run(["sh", "-c", "mkdir -p ~/many && cd ~ && seq -f file%g 1100 | xargs touch"]);
    const own = await victim.session(`cwd=${victim.home}`);
    expect(await victim.run("echo x >file7 && cat file7 && mkdir many/d && echo made", own)).toBe(
      "x\nmade\n",
    );
    await victim.server.run(["sh", "-c", "cd ~ && rm -r many file*"]);
  });

  test("links of the home folder lead where the user has put things", async () => {
    const disk = join(victim.server.home.folder, "disk");
    await victim.server.run([
      "sh",
      "-c",
      `mkdir -p ${disk}/p; cd ~; ln -s ${disk} d; mkdir -p .config; ln -s ${disk} .config/d`,
    ]);
    const own = await victim.session(`cwd=${victim.home}/d/p`);
    expect(await victim.run("echo x >~/d/p/f && cat ~/.config/d/p/f && cd ~/d/p && pwd", own)).toBe(
      `x\n${victim.home}/d/p\n`,
    );
  });

  test("tools of ollie's own: files", async () => {
    const call = (tool: string, args: object) => victim.ask(`call ${tool} ${JSON.stringify(args)}`, session);
    expect(await call("file_write", { path: "a.txt", content: "one\ntwo\n" })).not.toMatch(
      /denied|could not/,
    );
    expect(await call("file_read", { path: "a.txt" })).toContain("two");
    expect(await call("file_edit", { path: "a.txt", old: "two", new: "three" })).not.toMatch(
      /denied|could not/,
    );
    expect(await call("file_grep", { pattern: "three" })).toContain("a.txt");
  });

  test("bun: tests of ollie's own", async () => {
    for (const path of ["src/config/envfile.ts", "src/fault.ts", "test/config/envfile.test.ts"]) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      copyFileSync(join(top, path), join(folder, path));
    }
    // A checkout may be closed to others.
    copyFileSync(process.execPath, join(folder, "bun"));
    const result = await victim.run("./bun test test/config/envfile.test.ts 2>&1", session);
    expect(result).toMatch(/^ *[1-9]\d* pass$/m);
    expect(result).toMatch(/^ *0 fail$/m);
  });

  test.skipIf(lacks("node", has("node")))("tsc, from node_modules", async () => {
    mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
    cpSync(join(top, "node_modules/typescript"), join(folder, "node_modules/typescript"), {
      recursive: true,
    });
    symlinkSync("../typescript/bin/tsc", join(folder, "node_modules/.bin/tsc"));
    const result = await victim.run(
      "echo 'export const x: number = 7; console.log(x)' >t.ts && node_modules/.bin/tsc --outDir out t.ts && node out/t.js && echo 'const y: string = 7' >u.ts && npx --no-install tsc --noEmit u.ts",
      session,
    );
    expect(result).toContain("7\nu.ts(1,7): error TS2322");
  });
});
