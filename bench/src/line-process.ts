import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** A child process that says `ready` and then answers each line with one line. It rests between them. */
export class LineProcess {
  private readonly child: ChildProcessByStdio<Writable, Readable, null>
  private readonly lines: AsyncIterator<string>
  private readonly what: string

  private constructor(what: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.what = what
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
  }

  /** Starts it and waits until it is ready. */
  static async start(what: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<LineProcess> {
    const process = new LineProcess(what, command, args, env)
    const said = await process.nextLine()
    if (said !== 'ready') throw new Error(`${what} said "${said}" instead of "ready"`)
    return process
  }

  get pid(): number {
    return this.child.pid as number
  }

  async ask(line: string): Promise<unknown> {
    this.child.stdin.write(`${line}\n`)
    return JSON.parse(await this.nextLine())
  }

  /** Ends it by closing its input. */
  async stop(): Promise<void> {
    const gone = this.child.exitCode === null ? new Promise((resolve) => this.child.once('exit', resolve)) : undefined
    this.child.stdin.end()
    await gone
  }

  private async nextLine(): Promise<string> {
    const { done, value } = await this.lines.next()
    if (done) throw new Error(`${this.what} ended without an answer`)
    return value
  }
}

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
