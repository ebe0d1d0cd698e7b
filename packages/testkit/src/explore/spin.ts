import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** A question to the model. */
interface ModelCheck {
  readonly name: string
  readonly defines: Defines
}

/** A fault that the model is given, and the configuration in which Spin finds it. */
interface ModelFault {
  readonly fault: string
  readonly defines: Defines
}

/** Small enough for every run of the tests. */
export const SMALL_CHECKS: readonly ModelCheck[] = [
  { name: 'two takers of one key, stopped anywhere, an auditor', defines: { SECOND: 1, ATTEMPTS: 2 } },
  { name: 'two takers of two keys, stopped anywhere, an auditor', defines: { SECOND: 2, ATTEMPTS: 2 } },
  { name: 'two takers of one key, a burst of one', defines: { SECOND: 1, ATTEMPTS: 2, BURST: 1 } },
]

/** `npm run prove:model`. */
export const LARGE_CHECKS: readonly ModelCheck[] = [
  { name: 'two takers of one key, three attempts', defines: { SECOND: 1 } },
  { name: 'two takers of one key, clocks alike', defines: { SECOND: 1, SECOND_NOW: 0 } },
  { name: 'two takers of two keys, three attempts', defines: { SECOND: 2 } },
  { name: 'three takers of two keys', defines: { SECOND: 1, THIRD: 2, AUDIT: 0, ATTEMPTS: 2 } },
  { name: 'three takers of one key', defines: { SECOND: 1, THIRD: 1, AUDIT: 0, ATTEMPTS: 2 } },
  {
    name: 'three takers of two keys, a burst of one, the clocks of two behind',
    defines: { SECOND: 1, SECOND_NOW: 0, THIRD: 2, AUDIT: 0, ATTEMPTS: 2, BURST: 1 },
  },
  { name: 'three takers of two keys, one attempt, stopped anywhere, an auditor', defines: { SECOND: 1, THIRD: 2, ATTEMPTS: 1 } },
]

const PAIR = { SECOND: 1, ATTEMPTS: 2 }
const STRANGERS = { SECOND: 2, ATTEMPTS: 2 }

export const MODEL_FAULTS: readonly ModelFault[] = [
  { fault: 'NO_RESCAN', defines: PAIR },
  { fault: 'RIVALS_BOTH_GO_ON', defines: PAIR },
  { fault: 'MARK_WIPED', defines: STRANGERS },
  { fault: 'IDENTITY_LEFT', defines: PAIR },
  { fault: 'PLAIN_IDENTITY', defines: PAIR },
  { fault: 'NO_GENERATION', defines: STRANGERS },
  { fault: 'IDENTITY_FIRST', defines: PAIR },
  { fault: 'NO_SECOND_LOOK', defines: PAIR },
  { fault: 'PLAIN_STORE', defines: { ...PAIR, BURST: 1 } },
  { fault: 'FIRST_TAKE_FREE', defines: { ...PAIR, BURST: 1 } },
  { fault: 'FORGETS_ITSELF', defines: PAIR },
  { fault: 'NO_TAKEOVER_TIME', defines: { SECOND: 1, SECOND_NOW: 0, THIRD: 2, AUDIT: 0, ATTEMPTS: 2, BURST: 1 } },
]

/** Names that the model is compiled with; see the head of table.pml. */
export type Defines = Readonly<Record<string, number>>

export interface SpinResult {
  /** Distinct states that were looked at. */
  readonly states: number
  /** Whether there was no other state to look at. */
  readonly complete: boolean
  /** The assertion that failed, if one did. */
  readonly error: string | undefined
  readonly seconds: number
}

const run = promisify(execFile)
const MODEL = fileURLToPath(new URL('../../model/table.pml', import.meta.url))
const PAN_FLAGS = ['-DSAFETY', '-DNOREDUCE', '-DCOLLAPSE', '-w']
/** A planted fault is found after a few states, in less time than the compiler takes to optimize. */
const levelFor = (defines: Defines): string => (Object.keys(defines).some((name) => name.startsWith('FAULT_')) ? '-O0' : '-Og')
/** 2^22 slots to begin with. Takers that are left model are no fault of the model (-E). */
const SEARCH_FLAGS = ['-E', '-m200000', '-w22']
const MOST_OUTPUT_BYTES = 2 ** 24

/**
 * Looks at every state that the model of the table can come to, with Spin.
 *
 * @throws {Error} when Spin or the C compiler fail.
 */
export async function checkModel(defines: Defines): Promise<SpinResult> {
  const startMs = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'sluicegate-model-'))
  try {
    const names = Object.entries(defines).map(([name, value]) => `-D${name}=${value}`)
    await run('spin', ['-a', ...names, MODEL], { cwd: folder })
    await run('gcc', [levelFor(defines), ...PAN_FLAGS, '-o', 'pan', 'pan.c'], { cwd: folder })
    const { stdout } = await run('./pan', SEARCH_FLAGS, { cwd: folder, maxBuffer: MOST_OUTPUT_BYTES })
    return { ...readReport(stdout), seconds: (performance.now() - startMs) / 1000 }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What Spin's checker printed. */
export function readReport(text: string): Omit<SpinResult, 'seconds'> {
  const states = text.match(/(\d+) states, stored/)?.[1]
  const errors = text.match(/errors: (\d+)/)?.[1]
  if (states === undefined || errors === undefined) throw new Error(`not a report of Spin's checker:\n${text}`)
  const error = errors === '0' ? undefined : (text.match(/pan:1: (.*) \(at depth/)?.[1] ?? 'unknown')
  return { states: Number(states), complete: errors === '0' && !/Search not completed|max search depth|out of memory/.test(text), error }
}
