import { after } from 'node:test'

/** What a failed test leaves open ends with its group: nothing else runs as long after the last test. */
const LEFT_OPEN_MS = 20_000

let areOver = false
after(() => {
  areOver = true
  setTimeout(endWhatIsLeft, LEFT_OPEN_MS).unref()
})

/** `process.exit` in a test would drop those behind it, and the process would have passed. */
process.on('exit', () => {
  if (areOver) return
  console.error('The process ended before its tests did: one of them called process.exit.')
  process.exitCode = 1
})

function endWhatIsLeft() {
  console.error(
    `The tests are over, but the process goes on with what one of them left open: ${process.getActiveResourcesInfo().join(', ')}`,
  )
  process.exit(1)
}
