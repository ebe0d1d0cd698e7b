import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildDebianPackage } from '../debian/debian-package.js'
import type { Executable } from '../executable/executable.js'
import { version } from '../made-with.js'
import { eventually, output, running } from './running.js'

const PATH = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** The Debian package, on this machine's own system: systemd runs over it as it is, and what it changes is thrown away. */
export function debianTests(executable: () => Executable): void {
  let made: string | undefined
  // What the release packs smaller has the same content.
  const deb = (): string => {
    made ??= buildDebianPackage(executable(), 'gzip').path
    return made
  }

  test('lintian finds no errors and no warnings in the Debian package', () => {
    assert.equal(output(['lintian', '--allow-root', '--fail-on', 'error,warning', deb()], { ...PATH, LC_ALL: 'C.UTF-8' }), '')
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
