import { readFileSync } from 'node:fs'
import { arch, cpus, loadavg, release, totalmem, type } from 'node:os'
import { goVersion } from './go-rival.js'

/** Where a run took place. */
export type Machine = ReturnType<typeof machine>

export function machine() {
  const [first] = cpus()
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    os: distribution(),
    kernel: `${type()} ${release().split('-')[0]} ${arch()}`,
    node: `${process.version} (V8 ${process.versions.v8})`,
    go: goVersion()?.replace('go version ', '') ?? 'none',
  }
}

/** Runnable tasks, averaged over the last minute: how quiet the machine was. */
export function load(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100
}

function distribution(): string {
  try {
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? process.platform
  } catch {
    return process.platform
  }
}
