import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'

/** The wall clock of one program, by libfaketime: it can be moved while the program runs. Its monotonic clock stays as it is. */
export class FakedClock {
  private readonly settings: readonly string[]
  private readonly file: string

  /** @param file says how far the clock is off; the program has to be allowed to read it. */
  constructor(file: string) {
    this.file = file
    this.move(0)
    const { stdout } = spawnSync('faketime', ['-f', '+0', 'printenv', 'LD_PRELOAD'])
    const library = stdout?.toString().trim() ?? ''
    if (library === '') throw new Error('faketime is missing: apt install faketime')
    this.settings = [
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${file}`,
      'FAKETIME_NO_CACHE=1',
      'FAKETIME_DISABLE_SHM=1',
      'DONT_FAKE_MONOTONIC=1',
    ]
  }

  /** A command line that runs the program on this clock; the process has the id of the program itself. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]] {
    return ['env', [...this.settings, program, ...args]]
  }

  /** Moves it so far from the clock of the machine. */
  move(bySeconds: number): void {
    writeFileSync(this.file, `${bySeconds < 0 ? '' : '+'}${bySeconds}\n`, { mode: 0o644 })
  }
}
