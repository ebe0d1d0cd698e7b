import { parentPort, workerData } from 'node:worker_threads'
import { type ConfigPart, partsOf, partsOfData } from './config-parts.js'
import { ConfigError, type Fault } from './fault.js'
import { type ConfigFile, type Known, parseFiles, readConfig } from './read-config.js'
import { TierData } from './tiers/tier-data.js'
import { knownTierFiles, knowTierFile, readTierFile } from './tiers/tier-file.js'

/** What a reader is to read: a configuration, or data files of tiers. */
export type ReaderTask = { readonly knownFiles: readonly KnownFile[] } & (
  | { readonly path: string; readonly files: readonly ConfigFile[] | undefined; readonly known: Known }
  | { readonly data: readonly string[] }
)

/** A data file that the other side has read, with all of it but its keys. */
export interface KnownFile {
  readonly file: string
  readonly signature: string
  readonly targets: TierData['targets']
  readonly rows: number
}

/** What a reader answers each request for more with. */
export type ReaderAnswer = { readonly part: ConfigPart } | { readonly faults: readonly Fault[] } | { readonly isDone: true }

/** Reads what the other side asked for, and sends a part each time that it asks for one: it takes one when it has nothing else to do. */
export function serveReader(): void {
  const port = parentPort
  if (port === null) throw new Error('a reader runs in a thread of its own')
  const task = workerData as ReaderTask
  let parts: Iterator<ConfigPart> | undefined
  port.on('message', () => {
    const answer = ((): ReaderAnswer => {
      try {
        parts ??= partsFor(task)
        const { done, value } = parts.next()
        return done ? { isDone: true } : { part: value }
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        return { faults: error.faults }
      }
    })()
    port.postMessage(answer)
    if (!('part' in answer)) port.close()
  })
}

function partsFor(task: ReaderTask): Iterator<ConfigPart> {
  const stubs = new Set<TierData>()
  for (const { file, signature, targets, rows } of task.knownFiles) {
    const data = new TierData()
    data.take({ targets, rows })
    stubs.add(data)
    knowTierFile(file, { signature, data })
  }
  const files = () =>
    new Map(Array.from(knownTierFiles(), ([file, { signature, data }]) => [data, { file, signature, isKnown: stubs.has(data) }]))
  if ('data' in task) {
    const all = task.data.map(readTierFile)
    return partsOfData(all, files())
  }
  const config = task.files === undefined ? readConfig(task.path, task.known) : parseFiles(task.files, task.known)
  return partsOf(config, files())
}
