/** One run of a closed loop against one server. */
export interface ServerRun {
  readonly perSecond: number
  /** Processor time of the server for one request, in microseconds. */
  readonly cpuUs: number
}

/** How often, and how long each run is. */
export type TimedEffort = Readonly<Record<'rounds' | 'seconds', number>>

/** Runs of each subject, one after the other in each round. */
export async function inRounds<Subject, Run>(
  subjects: readonly Subject[],
  rounds: number,
  run: (subject: Subject) => Promise<Run>,
): Promise<(readonly [Subject, Run[]])[]> {
  const found = subjects.map((subject) => [subject, [] as Run[]] as const)
  for (let round = 0; round < rounds; round++) for (const [subject, runs] of found) runs.push(await run(subject))
  return found
}
