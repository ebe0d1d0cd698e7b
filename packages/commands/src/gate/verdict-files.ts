import { spawn } from 'node:child_process'
import { rename, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { dirname, join } from 'node:path'
import type { VerdictInForce } from 'sluicegate/gate'
import { replaceFault } from 'sluicegate-config/read-file.js'

/** nginx builds its hash of no longer key than a bucket holds, and refuses the whole file. */
const MAX_MAP_KEY_LENGTH = 200
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/
/** The end of a command that failed, for the message. */
const SHOWN_CHARACTERS = 300
const COMMAND_MS = 60_000

/** A text out of the verdicts in force, and the number of keys that it cannot hold. */
export interface VerdictText {
  readonly text: string
  readonly leftOut: number
}

/**
 * Verdicts as lines of an nginx `map`. nginx compares the keys of a map without regard to case, and refuses a file with the same key twice:
 * of several such keys the most severe verdict counts. Keys that are long, not ASCII or hold a backslash are left out: nginx would see another
 * text than its log does.
 */
export function nginxMap(verdicts: readonly VerdictInForce[]): VerdictText {
  const severity = ['flag', 'throttle', 'block']
  const byKey = new Map<string, VerdictInForce>()
  let leftOut = 0
  for (const each of verdicts) {
    const key = each.key.toLowerCase()
    if (key.length > MAX_MAP_KEY_LENGTH || !PRINTABLE_ASCII.test(key) || key.includes('\\')) leftOut++
    else if (severity.indexOf(each.verdict) > severity.indexOf(byKey.get(key)?.verdict ?? '')) byKey.set(key, each)
  }
  // A backslash before the first character: the key is none of the words of a map, and no regular expression.
  const lines = [...byKey].map(([key, { verdict }]) => `"\\\\${key.replaceAll('"', '\\"')}" ${verdict};\n`).sort()
  return { text: `# Written by sluicegate gate.\n${lines.join('')}`, leftOut }
}

/** Verdicts as lines of an nginx `geo`, which knows networks: `2001:db8:0:4200::/56 block;`. Keys that are no address are left out. */
export function nginxGeo(verdicts: readonly VerdictInForce[]): VerdictText {
  const named = verdicts.filter(({ key }) => isNetwork(key))
  const lines = named.map(({ key, verdict }) => `${key} ${verdict};\n`).sort()
  return { text: `# Written by sluicegate gate.\n${lines.join('')}`, leftOut: verdicts.length - named.length }
}

/** Keys come from logs: nginx refuses the whole file for one line that it does not understand. */
function isNetwork(key: string): boolean {
  const [address = '', bits] = key.split('/')
  const family = isIP(address)
  return (
    family !== 0 && !address.includes('%') && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32)))
  )
}

/** The blocked keys, one a line; only those of printable ASCII. */
export function denyList(verdicts: readonly VerdictInForce[]): VerdictText {
  const blocked = verdicts.filter(({ verdict }) => verdict === 'block')
  const keys = blocked.map(({ key }) => key).filter((key) => PRINTABLE_ASCII.test(key))
  return {
    text: keys
      .sort()
      .map((key) => `${key}\n`)
      .join(''),
    leftOut: blocked.length - keys.length,
  }
}

/** A file that always holds one whole list: a new one takes its place by a rename. */
export class VerdictFile {
  readonly path: string
  readonly #textOf: (verdicts: readonly VerdictInForce[]) => VerdictText
  #written: string | undefined
  /** Keys of the last list that it cannot hold. */
  leftOut = 0

  constructor(path: string, textOf: (verdicts: readonly VerdictInForce[]) => VerdictText) {
    this.path = path
    this.#textOf = textOf
  }

  /** True where the file has changed. */
  async write(verdicts: readonly VerdictInForce[]): Promise<boolean> {
    const { text, leftOut } = this.#textOf(verdicts)
    this.leftOut = leftOut
    if (text === this.#written) return false
    const fault = replaceFault(this.path)
    if (fault !== undefined) throw new Error(`${this.path} ${fault}`)
    const temporary = join(dirname(this.path), `.sluicegate-${process.pid}-${crypto.randomUUID()}`)
    try {
      await writeFile(temporary, text, { flag: 'wx' })
      await rename(temporary, this.path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
    this.#written = text
    return true
  }
}

/** Runs a command of the user in a shell. No key is ever a part of it. @throws {Error} when it fails, or does not end in a minute. */
export async function runCommand(command: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const child = spawn(command, { shell: true, stdio: ['ignore', 'ignore', 'pipe'], timeout: COMMAND_MS, killSignal: 'SIGKILL' })
    let complaint = ''
    child.stderr.on('data', (text) => {
      complaint = (complaint + text).slice(-SHOWN_CHARACTERS)
    })
    child.once('error', reject)
    // Not until its pipes are closed: a program that it left behind may hold them for ever.
    child.once('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`"${command}" ended with ${code ?? 'a signal'}: ${complaint.trim()}`))
    })
  })
}
