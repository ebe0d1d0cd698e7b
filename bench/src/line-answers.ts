import { createInterface } from 'node:readline'

/** The end of a `LineProcess` in the process itself: says `ready`, and answers each line with one of JSON until the input ends. */
export async function answerLines(answer: (line: string) => unknown): Promise<never> {
  console.log('ready')
  for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await answer(line)))
  process.exit(0)
}

/** The same with one repeat for each `run`; any other line ends the process. */
export async function answerRuns(run: () => Promise<unknown>): Promise<never> {
  return answerLines((line) => (line === 'run' ? run() : process.exit(0)))
}
