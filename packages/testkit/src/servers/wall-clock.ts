import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('../../native/wall-clock.c', import.meta.url))

/** The wall clock of one program, by a library of our own: Redis hangs under libfaketime. Its monotonic clock stays as it is. */
export class WallClock {
  private readonly library: string
  private readonly file: string

  /** @param folder gets the library, compiled by gcc, and the offset. */
  constructor(folder: string) {
    this.library = join(folder, 'wall-clock.so')
    this.file = join(folder, 'wall-clock')
    writeFileSync(this.file, Buffer.alloc(8))
    const { status, stderr } = spawnSync('gcc', ['-O1', '-Wall', '-shared', '-fPIC', '-o', this.library, SOURCE])
    if (status !== 0) throw new Error(`gcc failed or is missing (apt install gcc libc6-dev): ${stderr}`)
  }

  /** A command line that runs the program on this clock; the process has the id of the program itself. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]] {
    return ['env', [`LD_PRELOAD=${this.library}`, `WALL_CLOCK_FILE=${this.file}`, program, ...args]]
  }

  /** Moves it so far from the clock of the machine, in one step, while the program runs. */
  move(bySeconds: number): void {
    const offset = Buffer.alloc(8)
    offset.writeBigInt64LE(BigInt(Math.round(bySeconds * 1_000_000)))
    // Written in its place: the program has mapped it.
    writeFileSync(this.file, offset, { flag: 'r+' })
  }
}
