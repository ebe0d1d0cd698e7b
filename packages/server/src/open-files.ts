import { closeSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import type { Log } from './log.js'
import { type Part, ticking } from './part.js'

export const OUT_OF_FILES = 'too many files are open: raise the limit (ulimit -n, or LimitNOFILE= of systemd)'
const LOOK_MS = 1_000
const SAY_MS = 60_000
/** Beside connections of clients: listeners, files, the store. */
const OTHERS = 64

/** Whether the process, or the machine, may open no more files, connections among them. */
export function isOutOfFiles(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')
}

/**
 * Says in the log that no more files can be opened: at the start that connections may come to that, and once a minute while it is so. The runtime
 * closes a connection then that it cannot take, and reports nothing.
 *
 * @param canOpen for tests.
 */
export function openFiles(log: Log, maxConnections: number, canOpen: () => boolean = canOpenOne, most = mostOpenFiles()): Part {
  let saidMs = Number.NEGATIVE_INFINITY
  const looking = ticking('open files', LOOK_MS, () => {
    if (performance.now() < saidMs + SAY_MS || canOpen()) return
    saidMs = performance.now()
    log.error({ openFiles: most }, `connections of clients are closed without an answer: ${OUT_OF_FILES}`)
  })
  return {
    ...looking,
    ready() {
      looking.ready?.()
      if (most === undefined || most >= maxConnections + OTHERS) return
      log.warn(
        { openFiles: most, maxConnections },
        'this process may open fewer files than clients.max-connections needs: raise the limit (ulimit -n, or LimitNOFILE= of systemd), or lower max-connections',
      )
    },
  }
}

function canOpenOne(): boolean {
  try {
    closeSync(openSync(devNull, 'r'))
    return true
  } catch (error) {
    return !isOutOfFiles(error)
  }
}

/** The limit of this process, which the runtime has raised as far as it may; undefined where the system does not say. */
function mostOpenFiles(): number | undefined {
  try {
    const [, most] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return most === undefined ? undefined : Number(most)
  } catch {
    return undefined
  }
}
