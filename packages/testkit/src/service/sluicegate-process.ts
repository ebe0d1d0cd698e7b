import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { get as getEncrypted } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { readExposition, seriesValue } from './exposition.js'

/** The resident set of a process, as Linux tells it. */
export function residentBytes(pid: number | undefined): number {
  const [, kB] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kB) * 1_024
}

const COMPILED = fileURLToPath(import.meta.resolve('sluicegate-server/dist/main.js'))
const BUNDLE = fileURLToPath(new URL('../bundle/main.js', `file://${COMPILED}`))
/** What the bundle is made of, relative to the compiled program: written by the compiler at each change. */
const BUILDS = ['sluicegate', 'config', 'commands', 'server'].map((name) => join(COMPILED, `../../../${name}/dist/src.tsbuildinfo`))

/** The program `sluicegate`: the bundle that users get, which starts in less time, unless something was compiled after it. */
export const MAIN = isNewest(BUNDLE) ? BUNDLE : COMPILED

function isNewest(bundle: string): boolean {
  return existsSync(bundle) && BUILDS.every((file) => statSync(file).mtimeMs <= statSync(bundle).mtimeMs)
}

/** A test, a file of tests, or whatever else ends what it has started. */
export interface Cleanup {
  after(end: () => unknown): void
}

/** The command line in its own process, which ends with the test. */
export function sluicegate(t: Cleanup, ...args: string[]): ChildProcessWithoutNullStreams {
  return sluicegateOn(process.execPath, t, ...args)
}

/** The same with another version of Node.js, or with options for it. */
export function sluicegateOn(node: string | readonly string[], t: Cleanup, ...args: string[]): ChildProcessWithoutNullStreams {
  const [program = '', ...options] = [node].flat()
  const child = spawn(program, [...options, MAIN, ...args])
  t.after(() => child.kill('SIGKILL'))
  return child
}

/** Waits until the service has printed its address, and returns its output. */
export function announcement(child: ChildProcessWithoutNullStreams): Promise<{ url: string; text: string }> {
  return new Promise((resolve, reject) => {
    let text = ''
    let log = ''
    child.stderr.on('data', (chunk) => {
      log += chunk
    })
    child.stdout.on('data', (chunk) => {
      text += chunk
      const url = /listens on (\S+)/.exec(text)?.[1]
      if (url !== undefined && /Watch:.*\n/.test(text)) resolve({ url, text })
    })
    child.once('close', (code, signal) => reject(new Error(`it ended with ${signal ?? code}: ${text}${log}`)))
  })
}

/** What a command printed, and its exit code; null after a signal. */
export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Waits until the process has ended, and returns its output from now on. */
export async function ended(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const [out, err, [code]] = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, 'close')])
  return { code, out, err }
}

/** A file for the length of a test. */
export function configFile(t: Cleanup, yaml: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  const file = join(folder, 'gate.yaml')
  writeFileSync(file, yaml)
  return file
}

/** A service in its own process, whose memory can be read. */
export interface ServiceProcess {
  readonly url: string
  /** Of the listeners that are announced beside it, by name. */
  readonly urls: ReadonlyMap<string, URL>
  readonly child: ChildProcessWithoutNullStreams
  /** Resident memory now. */
  rssBytes(): number
  /** The text of `/metrics`. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>
  /** Sends a signal, and resolves with the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

export async function serveProcess(t: Cleanup, yaml: string, ...flags: string[]): Promise<ServiceProcess> {
  return served(sluicegate(t, 'serve', '--config', configFile(t, yaml), ...flags))
}

/** Waits until `child` serves. @param ca the authority of its certificate, where its connections are encrypted. */
export async function served(child: ChildProcessWithoutNullStreams, ca?: string): Promise<ServiceProcess> {
  const { url, text } = await announcement(child)
  const urls = new Map(Array.from(text.matchAll(/^ {2}(\w+): \w+(:\/\/\S+)$/gm), ([, name = '', at]) => [name, new URL(`http${at}`)]))
  const ended = once(child, 'close')
  return {
    url,
    urls,
    child,
    rssBytes: () => residentBytes(child.pid),
    async metric(name, labels = {}) {
      const exposition = await textAt(`${url}/metrics`, ca)
      return seriesValue(readExposition(exposition), name, labels)
    },
    async end(signal) {
      child.kill(signal)
      const [code] = await ended
      return code
    },
  }
}

/** Over its own connection, which is closed afterwards: a pool would keep some that are counted. */
function textAt(url: string, ca: string | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = (ca === undefined ? get : getEncrypted)(url, { agent: false, ...(ca && { ca }) }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.once('end', () => resolve(text)).once('error', reject)
    })
    sent.once('error', reject)
  })
}
