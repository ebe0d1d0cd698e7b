import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { RateJob, RateReport } from './rate-process.js'

/** Several processes of one contender. */
export class RateProcesses {
  readonly name: string
  private readonly children: readonly ChildProcess[]

  private constructor(name: string, children: readonly ChildProcess[]) {
    this.name = name
    this.children = children
  }

  static async open(contender: number, url: string, count: number): Promise<RateProcesses> {
    const children: ChildProcess[] = []
    let name = ''
    // One after another: two that make their tables at once may fail.
    for (let i = 0; i < count; i++) {
      const child = fork(fileURLToPath(new URL('./rate-process.js', import.meta.url)), [String(contender), url])
      children.push(child)
      name = await answerOf<string>(child)
    }
    return new RateProcesses(name, children)
  }

  /** All at once. Decisions of all of them a second, and the slowest 99 % of a process. */
  async run(job: RateJob): Promise<{ readonly perSecond: number; readonly p99Ms: number }> {
    const reports = await Promise.all(
      this.children.map((child) => {
        child.send(job)
        return answerOf<RateReport>(child)
      }),
    )
    return {
      perSecond: Math.round(reports.reduce((sum, { decisions, ms }) => sum + (decisions / ms) * 1000, 0)),
      p99Ms: Math.max(...reports.map(({ p99Ms }) => p99Ms)),
    }
  }

  async close(): Promise<void> {
    await Promise.all(
      this.children.map((child) => {
        const exit = once(child, 'exit')
        child.disconnect()
        return exit
      }),
    )
  }
}

async function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const [answer] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`a process of the benchmark ended with ${code}`)
    }),
  ])
  return answer as Answer
}
