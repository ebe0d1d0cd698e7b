import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { StreamedLine, StreamingStart } from './streaming-fleet.js'

/** A primary in a separate process, with workers whose takes are printed line by line. */
export class StreamingPrimary {
  readonly process: ChildProcess
  private readonly lines: AsyncIterator<string>

  constructor(start: StreamingStart) {
    const program = fileURLToPath(new URL('streaming-fleet.js', import.meta.url))
    this.process = spawn(process.execPath, [program, JSON.stringify(start)], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.lines = createInterface({ input: this.process.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  }

  async next(): Promise<StreamedLine> {
    const { value, done } = await this.lines.next()
    if (done === true) throw new Error('the program ended')
    return JSON.parse(value) as StreamedLine
  }

  /** Reads until the lines since now are enough. */
  async until(isEnough: (lines: readonly StreamedLine[]) => boolean): Promise<readonly StreamedLine[]> {
    const lines: StreamedLine[] = []
    while (!isEnough(lines)) lines.push(await this.next())
    return lines
  }

  /** Ends all: workers end when their channel does. */
  end(): void {
    this.process.kill('SIGKILL')
  }
}

/** The sum of some counts over lines. */
export function countOf(lines: readonly StreamedLine[], of: (line: StreamedLine) => number | undefined): number {
  return lines.reduce((sum, line) => sum + (of(line) ?? 0), 0)
}
