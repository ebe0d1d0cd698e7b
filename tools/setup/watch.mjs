import { spawn } from 'node:child_process'
import { ROOT } from './root.mjs'

/** Runs programs side by side until one of them ends or the user interrupts; then ends the others. */
export async function runTogether(commands) {
  const children = commands.map(([command, ...args]) => spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] }))
  const end = (signal) => {
    for (const child of children) child.kill(signal)
  }
  process.on('SIGTERM', end).on('SIGINT', end)
  const codes = children.map((child) => new Promise((done, failed) => child.once('error', failed).once('exit', (code) => done(code ?? 0))))
  process.exitCode = await Promise.race(codes)
  end('SIGTERM')
  await Promise.all(codes)
  process.off('SIGTERM', end).off('SIGINT', end)
}
