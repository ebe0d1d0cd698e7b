// Loaded before all else: the default for SIGHUP is to end the process, and a start takes a second or two.

let heard: () => void = () => undefined
let isDue = false

/** Calls `reload` at each SIGHUP, also for one that came while the service was starting. */
export function onHangup(reload: () => void): void {
  heard = reload
  if (isDue) reload()
}

if (process.argv[2] === 'serve')
  process.on('SIGHUP', () => {
    isDue = true
    heard()
  })
