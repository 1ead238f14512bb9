/** An SSH server of ours, for what sshd needs PAM for: questions in several steps. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import ssh2 from "ssh2";

export interface Step {
  method: ssh2.AuthenticationType;
  /** Only for keyboard-interactive. */
  ask?: { name: string; instruction: string; prompts: ssh2.Prompt[]; answers: string[] };
  password?: string;
  /** Offered beside it, and refused without a question. */
  also?: ssh2.AuthenticationType[];
}

/** Lets in who passes all the steps; programs that are run say `welcome`. */
export async function otherEnd(hostKey: string, steps: Step[]) {
  const tries: string[] = [];
  const server = new ssh2.Server({ hostKeys: [readFileSync(hostKey)] }, (client) => {
    let at = 0;
    client.on("error", () => {});
    client.on("authentication", (context) => {
      const step = steps[at]!;
      const pass = () => {
        at++;
        if (at === steps.length) context.accept();
        else context.reject([...(steps[at]!.also ?? []), steps[at]!.method], true);
      };
      if (context.method !== "none") tries.push(context.method);
      if (context.method !== step.method) return context.reject([...(step.also ?? []), step.method]);
      if (context.method === "keyboard-interactive") {
        const { name, instruction, prompts, answers } = step.ask!;
        context.prompt(prompts, name, instruction, (given) => {
          if (JSON.stringify(given) === JSON.stringify(answers)) pass();
          else context.reject([...(step.also ?? []), step.method]);
        });
      } else if (context.method === "password") {
        if (context.password === step.password) pass();
        else context.reject([...(step.also ?? []), step.method]);
      } else if (context.method === "publickey" && !context.signature) context.accept();
      else pass();
    });
    client.on("session", (accept) => {
      accept().on("exec", (acceptExec) => {
        const stream = acceptExec();
        stream.write("welcome\n");
        stream.exit(0);
        stream.end();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, tries, close: () => server.close() };
}
