import type { ListenerName } from 'sluicegate-config/config.js'
import { type ListenAddress, listenAddressText } from 'sluicegate-config/listen-address.js'

/** Why the service cannot listen at `at`, and what to do; undefined for an error that has no such explanation. */
export function listenFault(error: NodeJS.ErrnoException, name: ListenerName, at: ListenAddress | undefined): string | undefined {
  const place = listenAddressText(at)
  const host = at !== undefined && 'host' in at ? at.host : ''
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${place} is in use by another program: stop it, or choose another address with --${name}`,
    EACCES: `${place} requires privileges that this user lacks: choose another address with --${name}, a port above 1023`,
    EADDRNOTAVAIL: `${host} is no address of this machine: choose another with --${name}`,
    ENOTFOUND: `${host} is not known: choose an address of this machine with --${name}`,
    ENOENT: `${place} is in a folder that does not exist: create it, or choose another with --${name}`,
  }
  return reasons[error.code ?? '']
}
