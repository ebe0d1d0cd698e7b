import type { Gate, VerdictChange, VerdictInForce } from 'sluicegate/gate'
import { LineOutput } from '../terminal/line-output.js'
import { outputFailed, printable, say } from '../terminal/usage-error.js'

const CLEAR = '\x1b[H\x1b[J'
const TOP_KEYS = 10
const VERDICT_ROWS = 15

/** Where the command draws. */
export interface GateScreen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** The output of this process: what a full disk does not take waits, and verdicts go on. */
export function gateOutput(isJson: boolean): GateScreen {
  const lostLine = (lost: number): string =>
    isJson ? `${JSON.stringify({ event: 'lost', lines: lost })}\n` : `${lost} lines are lost: the output had no room for them\n`
  let fault: NodeJS.ErrnoException | undefined
  const output = LineOutput.to(1, lostLine, (error) => {
    fault = error
    outputFailed(error)
  })
  process.on('exit', () => {
    output.flush()
    const { waiting, lost } = output.counts
    // Whoever closed it has read enough.
    if (waiting + lost === 0 || fault?.code === 'EPIPE' || fault?.code === 'EBADF') return
    process.exitCode = 1
    say(`sluicegate: ${waiting + lost} lines could not be written: ${fault?.message}\n`)
  })
  return {
    isTTY: process.stdout.isTTY,
    get columns() {
      return process.stdout.columns
    },
    write: (text) => output.write(text),
  }
}

/** What the command knows at a moment. */
export interface GateSummary {
  readonly time: string
  readonly recordsPerSecond: number
  readonly lines: number
  readonly unreadable: number
  readonly withoutKey: number
  /** Records whose time is far from that of the others around them. */
  readonly wild: number
  /** Between the newest record and now. */
  readonly behindMs: number | null
  readonly stats: ReturnType<Gate['stats']>
  readonly top: ReturnType<Gate['top']>
  readonly verdicts: readonly VerdictInForce[]
  /** Files written, commands run, calls made, and what of it failed. */
  readonly written: number
  readonly failed: number
  readonly leftOut: number
}

/** A change as one line. */
export function changeText({ key, verdict, before, count, timeMs, untilMs }: VerdictChange): string {
  const time = new Date(timeMs).toISOString()
  const what = verdict === 'pass' ? `${before} ends` : `${verdict} until ${new Date(untilMs).toISOString()}`
  return `${time}  ${printable(key)}  ${what}  (count ${count.toLocaleString('en')})\n`
}

/** A summary as text that fits the screen. */
export function summaryText(summary: GateSummary, { columns = 100, isTTY = false }: GateScreen): string {
  const { stats, top, verdicts, lines, unreadable, withoutKey, wild, recordsPerSecond, behindMs, written, failed, leftOut } = summary
  const number = (value: number): string => value.toLocaleString('en')
  const rows = [
    `Sluicegate gate  ${summary.time}`,
    `${number(lines)} lines, ${number(recordsPerSecond)} records a second${behindMs === null ? '' : `, ${number(behindMs)} ms behind`}`,
    `${number(stats.total)} in the window, margin of counts ${number(stats.margin)} (bound ${number(Math.ceil(stats.epsilon * stats.total))})`,
    `left out: ${number(unreadable)} unreadable, ${number(withoutKey)} without key or cost, ${number(stats.late)} from before the window`,
    ...(wild > 0 ? [`${number(wild)} records have a time far from that of the others around them`] : []),
    `outputs: ${number(written)} written, ${number(failed)} failed, ${number(leftOut)} keys cannot be written`,
    '',
    `verdicts: ${number(stats.verdicts)} in force, ${number(stats.refused)} refused for want of room`,
    ...[...verdicts]
      .sort((a, b) => b.count - a.count)
      .slice(0, VERDICT_ROWS)
      .map(
        ({ key, verdict, count, untilMs }) =>
          `  ${verdict.padEnd(8)}  ${number(count).padStart(12)}  ${new Date(untilMs).toISOString()}  ${key}`,
      ),
    '',
    'highest counts',
    ...top.slice(0, TOP_KEYS).map(({ key, count }) => `  ${number(count).padStart(22)}  ${key}`),
  ]
  return `${isTTY ? CLEAR : ''}${rows.map((row) => printable(row).slice(0, columns)).join('\n')}\n`
}
