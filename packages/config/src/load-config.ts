import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Config } from './config.js'
import { ConfigAssembly } from './config-parts.js'
import { ConfigError, unreadable } from './fault.js'
import { type ConfigFile, type Known, parseFiles, readConfig } from './read-config.js'
import type { KnownFile, ReaderAnswer, ReaderTask } from './reader-thread.js'
import type { TierData } from './tiers/tier-data.js'
import { type KnownTierFile, knownTierFiles, readTierFile } from './tiers/tier-file.js'

/** Far above what the largest files take; a folder over a network may not answer at all. */
const MAX_MS = 60_000

/** Reads configurations and data files beside this thread, which has requests to answer. */
export interface ConfigLoader {
  /** As `readConfig`, or `parseFiles` for files that were read before; rejects as they throw. */
  config(path: string, files: readonly ConfigFile[] | undefined, known: Known): Promise<Config>
  /** The keys in data files, by name. */
  data(files: readonly string[]): Promise<ReadonlyMap<string, TierData>>
}

/** Reads in this thread. */
export const IN_THIS_THREAD: Pick<ConfigLoader, 'data'> = {
  data: async (files) => new Map(files.map((file) => [file, readTierFile(file)])),
}

/** @param reader the program of the thread, which calls `serveReader`. */
export function configLoader(reader: URL): ConfigLoader {
  return {
    async config(path, files, known) {
      const assembly = await assembled(reader, path, { path, files, known })
      return assembly?.config() ?? (files === undefined ? readConfig(path, known) : parseFiles(files, known))
    },
    async data(files) {
      const assembly = await assembled(reader, files.join(', '), { data: files })
      return assembly?.data() ?? IN_THIS_THREAD.data(files)
    },
  }
}

type Asked = ReaderTask extends infer Task ? (Task extends unknown ? Omit<Task, 'knownFiles'> : never) : never

/** A thread that did not end in time, and hangs in the file system still. */
let hung: Worker | undefined

/** One thread for each reading: its memory goes with it, and one that hangs holds up nothing. Undefined where there can be no thread. */
async function assembled(reader: URL, what: string, asked: Asked): Promise<ConfigAssembly | undefined> {
  if (hung !== undefined) throw unreadable(what, new Error('an earlier reading has no answer yet'))
  const known = new Map(knownTierFiles())
  const knownFiles = Array.from(known, ([file, { signature, data }]): KnownFile => {
    return { file, signature, targets: data.targets, rows: data.size }
  })
  const worker = new Worker(reader, { workerData: { ...asked, knownFiles } })
  let timer: NodeJS.Timeout | undefined
  // A thread that waits for a folder over a network does not end either.
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      hung = worker
      worker.once('exit', () => {
        hung = undefined
      })
      reject(unreadable(what, new Error(`reading it took longer than ${MAX_MS / 1_000} s`)))
    }, MAX_MS)
  })
  try {
    return await Promise.race([received(worker, known), late])
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') throw new RangeError('there is not enough memory to read it')
    return undefined
  } finally {
    clearTimeout(timer)
    void worker.terminate()
  }
}

async function received(worker: Worker, known: ReadonlyMap<string, KnownTierFile>): Promise<ConfigAssembly> {
  const assembly = new ConfigAssembly(known)
  let fail: (error: Error) => void = () => undefined
  let answer: (answer: ReaderAnswer) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  worker.on('message', (message: ReaderAnswer) => answer(message))
  worker.once('error', (error) => fail(error as Error))
  worker.once('exit', () => fail(new Error('the thread has ended')))
  for (;;) {
    const next = new Promise<ReaderAnswer>((resolve) => {
      answer = resolve
    })
    worker.postMessage('next')
    const each = await Promise.race([next, failed])
    if ('faults' in each) throw new ConfigError(each.faults)
    if ('isDone' in each) return assembly
    assembly.add(each.part)
    await nextTurn()
  }
}
