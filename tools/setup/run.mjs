import { spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Refusal, ROOT } from './root.mjs'

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

/** Runs a step of the set-up, prints its name and duration, and its output only when it fails. */
export function step(what, command, args, env = {}) {
  const startedMs = performance.now()
  process.stderr.write(`${what} ... `)
  const done = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', env: { ...process.env, ...env }, maxBuffer: 2 ** 28 })
  console.error(outcome(done.status, startedMs))
  if (done.status === 0) return
  throw new Refusal(`${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}\nFailed: ${command} ${args.join(' ')}`)
}

/** The same while other steps go on. Its output goes to a file: no pipe is read during the other steps. */
export function stepBeside(what, command, args, env = {}) {
  const startedMs = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-setup-'))
  const output = join(folder, 'output')
  const to = openSync(output, 'w')
  console.error(`${what}, beside what follows`)
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', to, to], env: { ...process.env, ...env } })
  closeSync(to)
  return new Promise((done, failed) => {
    child.once('error', (error) => failed(new Refusal(`${command}: ${error.message}`)))
    child.once('close', (status) => {
      console.error(`${what} ... ${outcome(status, startedMs)}`)
      if (status === 0) done()
      else failed(new Refusal(`${readFileSync(output, 'utf8')}\nFailed: ${command} ${args.join(' ')}`))
    })
  }).finally(() => rmSync(folder, { recursive: true, force: true }))
}

function outcome(status, startedMs) {
  return `${status === 0 ? 'done' : 'failed'} in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`
}

/** Runs a program in the foreground; its exit code becomes ours. */
export function run(command, args) {
  return new Promise((done, failed) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit' })
    // A terminal sends its interrupt to the child as well; a plain `kill` reaches only this process.
    const pass = (signal) => child.kill(signal)
    process.on('SIGTERM', pass).on('SIGINT', () => {})
    child.once('error', failed)
    child.once('exit', (code, signal) => {
      process.exitCode = code ?? 1
      if (signal !== null) console.error(`${command} was ended by ${signal}`)
      process.off('SIGTERM', pass)
      done()
    })
  })
}

/** Becomes the program `main`: a server gets its signals first-hand that way. */
export async function serve(main, args) {
  process.chdir(ROOT)
  process.argv = [process.execPath, resolve(main), ...args]
  await import(pathToFileURL(resolve(main)).href)
}
