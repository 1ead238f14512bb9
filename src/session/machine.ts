/** The session machine with all its actors: agents are `src/turn`'s, jobs are provided here. */
import { fromPromise } from "xstate";
import { type JobEnding, type JobWork, jobMachine } from "../../actors/job.ts";
import { liveSession as sessionOfAgents } from "../turn/machine.ts";
import type { Job } from "./job.ts";

type Input = { work: JobWork };
const jobOf = (input: Input): Job => input.work as Job;

const liveJob = jobMachine.provide({
  actors: {
    watchEnd: fromPromise<JobEnding, Input>(({ input, signal }) => jobOf(input).watchEnd(signal)),
    endTree: fromPromise<boolean, Input>(({ input }) => jobOf(input).endTree()),
  },
});

export const liveSession = sessionOfAgents.provide({ actors: { job: liveJob } });
