import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Executable } from '../executable/executable.js'
import { buildImage, type Image } from '../image/image.js'
import { USER } from '../image/root-folder.js'
import { eventually, output, running } from './running.js'

const MOST_BYTES = 60_000_000

/** The image, read by another program than the one that wrote it. */
export function imageTests(executable: () => Executable): void {
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
