import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, before, test } from 'node:test'
import { buildDebianPackage } from './debian/debian-package.js'
import { buildExecutable, type Executable, librariesOf } from './executable/executable.js'
import { buildImage, type Image, USER } from './image/image.js'
import { version } from './software.js'
import { eventually, output, running, servedAt, take } from './testing/running.js'

const MOST_BYTES = 60_000_000

/** The image, read by another program than the one that wrote it. */
function imageTests(executable: () => Executable): void {
  let image: Image
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-image-'))
  const bundle = join(folder, 'bundle')
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('an image built twice is the same to the byte, and has at most 60 MB in a registry', () => {
    const digests = [0, 1].map(() => {
      image = buildImage(executable())
      return [image.digest, createHash('sha256').update(readFileSync(image.path)).digest('hex')]
    })
    assert.deepEqual(digests[0], digests[1])
    assert.ok(image.bytes <= MOST_BYTES, `${image.bytes} bytes`)
  })

  test('umoci unpacks the image: a user that is not root, no shell, labels, a health check, its own bill of materials', () => {
    const [tag] = JSON.parse(readFileSync(join(image.layout, 'index.json'), 'utf8')).manifests.map(
      (each: { annotations: Record<string, string> }) => each.annotations['org.opencontainers.image.ref.name'],
    )
    output(['umoci', 'unpack', '--image', `${image.layout}:${tag}`, bundle], { PATH: process.env.PATH })
    const { process: run, annotations } = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8'))
    assert.equal(`${run.user.uid}:${run.user.gid}`, USER)
    assert.deepEqual(run.args, ['/usr/bin/sluicegate', 'serve'])
    assert.equal(annotations['org.opencontainers.image.title'], 'sluicegate')
    assert.equal(annotations['org.opencontainers.image.stopSignal'], 'SIGTERM')
    assert.deepEqual(readdirSync(join(bundle, 'rootfs/usr/bin')), ['sluicegate'])
    assert.ok(!existsSync(join(bundle, 'rootfs/bin')))
    const bill = JSON.parse(readFileSync(join(bundle, 'rootfs/usr/share/doc/sluicegate/sbom.cdx.json'), 'utf8'))
    const names = bill.components.map(({ name }: { name: string }) => name)
    for (const name of ['node', 'pino', 'libc6']) assert.ok(names.includes(name), `${name} is in the bill of materials`)
  })

  test('from its own root file system, read only and as its user, the service answers, is healthy, drains and ends', async (t) => {
    const root = join(bundle, 'rootfs')
    const { process: run } = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8'))
    const env = Object.fromEntries(run.env.map((each: string) => each.split(/=(.*)/s).slice(0, 2)))
    // A network of its own, as containers have: its ports are free, and it is called from within.
    const inside = ['/usr/sbin/chroot', `--userspec=${USER}`, root]
    const readOnly = `ip link set lo up && mount --bind ${root} ${root} && mount -o remount,bind,ro ${root} && exec ${inside.join(' ')} "$@"`
    const service = running(t, ['unshare', '--mount', '--net', 'sh', '-c', readOnly, 'sh', ...run.args, '--drain', '2s'], {
      ...env,
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    })
    await service.printed(/listening/)
    const within = (...command: string[]): string[] => ['nsenter', '--net', '--mount', '--target', String(service.child.pid), ...command]
    const health = within(...inside, '/usr/bin/sluicegate', 'health')
    assert.equal(output(health, { PATH: '/usr/bin:/usr/sbin' }), 'ready\n')
    const taken = within(...inside, '/usr/bin/sluicegate', 'take', 'per-user', 'alice')
    assert.match(output(taken, { PATH: '/usr/bin:/usr/sbin' }), /^allowed by per-user: 99 left/)
    assert.match(readFileSync(`/proc/${service.child.pid}/status`, 'utf8'), /^Uid:\t65532\t/m)
    const ended = service.end('SIGTERM')
    await service.printed(/SIGTERM: answering for 2s more/)
    const draining = await eventually(async () => {
      const asked = running(t, health, { PATH: '/usr/bin:/usr/sbin' })
      return (await asked.end('SIGCONT')) === 1 && asked.text()
    }, 'the health check sees that the service drains')
    assert.equal(draining, 'stopping\n')
    assert.equal(await ended, 0)
  })
}

/** A folder in which a program finds nothing but itself and its libraries. */
interface EmptyRoot {
  readonly path: string
  /** The command that runs the program there. */
  command(...args: string[]): string[]
  write(name: string, text: string): void
}

function emptyRoot(executable: string): EmptyRoot {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-root-'))
  for (const file of librariesOf(executable)) {
    mkdirSync(dirname(path + file), { recursive: true })
    copyFileSync(realpathSync(file), path + file)
  }
  copyFileSync(executable, join(path, 'sluicegate'))
  return {
    path,
    command: (...args) => ['/usr/sbin/chroot', path, '/sluicegate', ...args],
    write: (name, text) => writeFileSync(join(path, name), text),
  }
}

const CONFIG = 'policies:\n  per-user: { algorithm: token-bucket, limit: 3, window: 1h }\n'
const LOG = Array.from({ length: 9 }, (_, i) => `192.0.2.1 - - [01/Jan/2026:00:00:0${i} +0000] "GET / HTTP/1.1" 200 5`).join('\n')

/** The executable in a root folder that has nothing but it, its libraries and files of a test. */
function executableTests(executable: () => Executable): void {
  let made: EmptyRoot | undefined
  after(() => made !== undefined && rmSync(made.path, { recursive: true }))
  const root = (): EmptyRoot => {
    made ??= emptyRoot(executable().path)
    made.write('limits.yaml', CONFIG)
    made.write('access.log', `${LOG}\n`)
    return made
  }
  const ran = (...args: string[]): string => output(root().command(...args))

  test('in an empty root the executable says its version and checks a file', () => {
    assert.equal(ran('--version').trim(), version())
    assert.match(ran('check', '/limits.yaml'), /good, 1 polic/)
  })

  for (const [what, ...flags] of [['one process'], ['two processes', '--processes', '2'], ['two threads', '--threads', '2']]) {
    test(`in an empty root ${what} of the executable serve one budget, the page, metrics, gRPC and RESP, and end by SIGTERM`, async (t) => {
      const listen = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--resp', '127.0.0.1:0']
      const service = running(t, root().command('serve', '--config', '/limits.yaml', '--json', '--drain', '0', ...listen, ...flags))
      const { http = '', grpc = '', resp = '' } = await servedAt(service)
      const answers = await Promise.all([0, 1, 2, 3, 4].map(() => take(http, 'per-user')))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 429, 429], service.text())
      const [page, script] = [await textAt(http, '/'), await textAt(http, '/metrics')]
      assert.match(page, /<!doctype html>/)
      const [, asset = ''] = /src="([^"]+\.js)"/.exec(page) ?? []
      assert.equal((await fetch(new URL(asset, `${http}/`))).status, 200, asset)
      assert.match(script, /sluicegate_/)
      assert.match(ran('take', 'per-user', 'bob', '--url', http), /^allowed by per-user: 2 left/)
      assert.equal(ran('health', '--url', http), 'ready\n')
      assert.match(ran('load', resp.replace('redis:', 'resp:'), '--policy', 'per-user', '--duration', '300ms', '--rate', '50'), /allowed/)
      assert.match(ran('load', grpc, '--policy', 'per-user', '--duration', '300ms', '--rate', '50'), /allowed/)
      assert.equal(await service.end('SIGTERM'), 0, service.text())
    })
  }

  test('workers of an executable that was started by a relative path start, too', async (t) => {
    const program = `./${relative(process.cwd(), executable().path)}`
    const flags = ['--config', join(root().path, 'limits.yaml'), '--http', '127.0.0.1:0', '--json', '--drain', '0', '--processes', '2']
    const service = running(t, [program, 'serve', ...flags])
    const { http = '' } = await servedAt(service)
    assert.equal((await take(http, 'per-user')).status, 200, service.text())
    assert.equal(await service.end('SIGTERM'), 0, service.text())
  })

  test('in an empty root the executable loads from two processes, replays a log and follows one', () => {
    const load = ['load', 'memory', '--config', '/limits.yaml', '--policy', 'per-user', '--duration', '300ms', '--rate', '50']
    assert.equal(JSON.parse(ran(...load, '--processes', '2', '--json')).processes, 2)
    const replay = JSON.parse(ran('replay', '/access.log', '--config', '/limits.yaml', '--json', '--html', '/report.html'))
    assert.match(JSON.stringify(replay), /"denied":6/)
    assert.match(readFileSync(join(root().path, 'report.html'), 'utf8'), /<svg|<script/)
    const gate = ran('gate', '--follow', '/access.log', '--once', '--window', '1m', '--block', '3', '--deny-list', '/denied', '--json')
    assert.match(gate, /"192\.0\.2\.1"/)
  })
}

async function textAt(url: string, path: string): Promise<string> {
  return (await fetch(url + path)).text()
}

const PATH = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** The Debian package, on this machine's own system: systemd runs over it as it is, and what it changes is thrown away. */
function debianTests(executable: () => Executable): void {
  let made: string | undefined
  // What the release packs smaller has the same content.
  const deb = (): string => {
    made ??= buildDebianPackage(executable(), 'gzip').path
    return made
  }

  // Node.js itself is what `deploy/debian/lintian-overrides` is about: reading its 100 MB is a minute of the processor.
  test('lintian finds no errors and no warnings in the Debian package, with another program in the place of the executable', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-lintian-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const [tree, path] = [join(folder, 'tree'), join(folder, 'sluicegate.deb')]
    output(['dpkg-deb', '--raw-extract', deb(), tree], PATH)
    copyFileSync('/usr/bin/true', join(tree, 'usr/bin/sluicegate'))
    rmSync(join(tree, 'usr/share/lintian/overrides/sluicegate'))
    output(['dpkg-deb', '--root-owner-group', '-Zgzip', '--build', tree, path], PATH)
    assert.equal(output(['lintian', '--allow-root', '--fail-on', 'error,warning', path], { ...PATH, LC_ALL: 'C.UTF-8' }), '')
  })

  test('the Debian package is installed, started, reloaded, restarted, removed and purged on systemd', async (t) => {
    const { inside, script, put } = await machine(t)
    // It forbids starts where systemd does not run.
    inside('rm', '--force', '/usr/sbin/policy-rc.d')
    put(deb(), '/root/sluicegate.deb')
    inside('dpkg', '--install', '/root/sluicegate.deb')
    const get = (what: string): string => inside('curl', '--silent', '--fail', `http://127.0.0.1:8080${what}`)
    await eventually(
      () => script('curl --silent http://127.0.0.1:8080/readyz || true') === 'ready\n',
      'the service is ready after the installation',
    )
    assert.equal(inside('systemctl', 'is-enabled', 'sluicegate').trim(), 'enabled')
    assert.match(get('/v1/take?policy=per-user&key=alice'), /"remaining":99/)
    assert.notEqual(script('stat -c %U /proc/$(systemctl show --value --property MainPID sluicegate)').trim(), 'root')
    assert.equal(inside('sluicegate', '--version').trim(), version())

    script("sed -i 's/limit: 100, window: 1m/limit: 50, window: 24h/' /etc/sluicegate/sluicegate.yaml && systemctl reload sluicegate")
    await eventually(() => get('/v1/peek?policy=per-user&key=new').includes('"limit":50'), 'the new limit is in force')
    assert.match(get('/v1/take?policy=per-user&key=bob'), /"remaining":49/)
    assert.match(
      script("echo '  broken: {}' >> /etc/sluicegate/sluicegate.yaml; systemctl reload sluicegate 2>&1 || echo refused"),
      /refused/,
    )
    assert.match(get('/v1/peek?policy=per-user&key=new'), /"limit":50/)
    script("sed -i '/broken/d' /etc/sluicegate/sluicegate.yaml && systemctl restart sluicegate")
    await eventually(
      () => script('curl --silent http://127.0.0.1:8080/readyz || true') === 'ready\n',
      'the service is ready after a restart',
    )
    assert.match(get('/v1/peek?policy=per-user&key=bob'), /"remaining":49/, 'keys are kept')

    const [, exposure = '10'] = /exposure level for sluicegate.service: ([\d.]+)/.exec(script('systemd-analyze security sluicegate')) ?? []
    assert.ok(Number(exposure) < 2, `systemd-analyze security: ${exposure}`)
    assert.match(completed(script, 'sluicegate '), /^check gate health load replay serve take top/)
    assert.match(completed(script, 'sluicegate serve --thr'), /^--threads$/)
    assert.match(script('MANWIDTH=80 man sluicegate'), /--processes/)

    inside('dpkg', '--remove', 'sluicegate')
    assert.match(script('systemctl is-active sluicegate || true'), /inactive/)
    assert.equal(
      script('ls /usr/bin/sluicegate /etc/sluicegate/sluicegate.yaml 2>/dev/null || true').trim(),
      '/etc/sluicegate/sluicegate.yaml',
    )
    inside('dpkg', '--purge', 'sluicegate')
    assert.equal(
      script('ls -d /etc/sluicegate /var/lib/sluicegate /var/lib/private/sluicegate /etc/default/sluicegate 2>/dev/null || true'),
      '',
    )
  })
}

/** What bash offers for the words so far. */
function completed(script: (text: string) => string, words: string): string {
  const list = words.split(' ')
  const text = `. /usr/share/bash-completion/completions/sluicegate
COMP_WORDS=(${list.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${list.length - 1}; _sluicegate; printf '%s\\n' "\${COMPREPLY[@]}" | sort | xargs`
  return script(text).replace('--help --version ', '').trim()
}

/** A system that runs beside this one. */
interface Machine {
  inside(...command: string[]): string
  script(text: string): string
  /** Copies a file into it. */
  put(file: string, to: string): void
}

/** Boots systemd over a copy of this system that is gone afterwards, with a network of its own. */
async function machine(t: Parameters<typeof running>[0]): Promise<Machine> {
  const root = mkdtempSync(join(tmpdir(), 'sluicegate-machine-'))
  output(['mount', '--bind', '/', root], PATH)
  t.after(() => {
    output(['umount', '--lazy', root], PATH)
    rmdirSync(root)
  })
  const flags = ['--volatile=overlay', '--private-network', '--boot', '--register=no', '--keep-unit', '--console=pipe', '--link-journal=no']
  const nspawn = running(t, ['systemd-nspawn', '--quiet', `--directory=${root}`, ...flags, 'systemd.unit=basic.target'], PATH)
  const enter = await eventually(
    () => {
      const leader = outputOrNothing(['pgrep', '--parent', String(nspawn.child.pid), '--full', 'systemd.unit=basic']).trim()
      if (!/^\d+$/.test(leader)) return undefined
      const within = ['nsenter', '--target', leader, '--mount', '--pid', '--uts', '--ipc', '--net', '--cgroup', '--root']
      // It says "degraded" where a unit of this machine failed, which is of no concern here.
      return outputOrNothing([...within, 'sh', '-c', 'systemctl is-system-running; true']).match(/^(running|degraded)/) && within
    },
    'systemd is up',
    nspawn.text,
  )
  // With it ends all that runs there.
  t.after(() => process.kill(Number(enter[2]), 'SIGKILL'))
  const inside = (...command: string[]): string => output([...enter, ...command], PATH)
  return {
    inside,
    script: (text) => inside('bash', '-c', text),
    // What is mounted elsewhere is not part of the copy.
    put: (file, to) => void output([...enter, 'dd', 'bs=1M', 'status=none', `of=${to}`], PATH, readFileSync(file)),
  }
}

function outputOrNothing(command: readonly string[]): string {
  try {
    return output(command, PATH)
  } catch {
    return ''
  }
}

// The executable is built once; each of these forms has it. They need root, as a root folder, a network and systemd of their own do.

let built: Executable

before(async () => {
  assert.equal(process.getuid?.(), 0, 'these tests need root: chroot, unshare and systemd-nspawn')
  built = await buildExecutable()
})

executableTests(() => built)
imageTests(() => built)
debianTests(() => built)
