import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Executable, librariesOf } from '../executable/executable.js'
import { BUILT, billOfMaterials, ROOT, sourceDateS, systemPackagesOf, version } from '../software.js'

/** Names of the processors in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const MEDIA = {
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  config: 'application/vnd.oci.image.config.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
}
const SECOND_NS = 1_000_000_000

/** An image that was built. */
export interface Image {
  /** The image in one file: `docker load` and `skopeo copy oci-archive:` read it. */
  readonly path: string
  /** The same as a folder, in OCI's layout. */
  readonly layout: string
  /** What a registry stores. */
  readonly bytes: number
  readonly digest: string
}

/**
 * Builds the image of an executable from nothing: one layer with the executable and the libraries that it links. Needs GNU tar. The same
 * executable, date and libraries give the same bytes.
 */
export function buildImage(executable: Executable): Image {
  const root = `${BUILT}root`
  const layout = `${BUILT}image`
  writeRootFolder(executable, root)
  rmSync(layout, { recursive: true, force: true })
  mkdirSync(`${layout}/blobs/sha256`, { recursive: true })
  const put = (content: Buffer): { digest: string; size: number } => {
    const hex = sha256(content)
    writeFileSync(`${layout}/blobs/sha256/${hex}`, content)
    return { digest: `sha256:${hex}`, size: content.length }
  }
  const tar = tarOf(root, '.')
  const layer = put(gzipSync(tar, { level: 6 }))
  const config = put(json(configOf(`sha256:${sha256(tar)}`)))
  const manifest = put(
    json({
      schemaVersion: 2,
      mediaType: MEDIA.manifest,
      config: { mediaType: MEDIA.config, ...config },
      layers: [{ mediaType: MEDIA.layer, ...layer }],
      annotations: labels(),
    }),
  )
  const platform = { architecture: architecture(), os: 'linux' }
  const annotations = { 'org.opencontainers.image.ref.name': version() }
  const index = { schemaVersion: 2, mediaType: MEDIA.index, manifests: [{ mediaType: MEDIA.manifest, ...manifest, platform, annotations }] }
  writeFileSync(`${layout}/oci-layout`, '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(`${layout}/index.json`, json(index))
  // For `docker load` before it read OCI's layout.
  const blob = ({ digest }: { digest: string }): string => `blobs/${digest.replace(':', '/')}`
  writeFileSync(`${layout}/manifest.json`, json([{ Config: blob(config), RepoTags: [`sluicegate:${version()}`], Layers: [blob(layer)] }]))
  const path = `${BUILT}sluicegate-image-${architecture()}.tar`
  writeFileSync(path, tarOf(layout, 'blobs', 'index.json', 'manifest.json', 'oci-layout'))
  return { path, layout, bytes: layer.size + config.size + manifest.size, digest: manifest.digest }
}

function configOf(diffId: string): object {
  const created = new Date(sourceDateS() * 1_000).toISOString()
  return {
    created,
    architecture: architecture(),
    os: 'linux',
    config: {
      User: USER,
      Env: ['PATH=/usr/bin', 'SLUICEGATE_CONFIG=/etc/sluicegate', 'SLUICEGATE_HTTP=0.0.0.0:8080', 'SLUICEGATE_GRPC=0.0.0.0:8081'],
      Entrypoint: ['/usr/bin/sluicegate'],
      Cmd: ['serve'],
      WorkingDir: '/',
      ExposedPorts: { '8080/tcp': {}, '8081/tcp': {} },
      StopSignal: 'SIGTERM',
      Healthcheck: {
        Test: ['CMD', '/usr/bin/sluicegate', 'health'],
        Interval: 30 * SECOND_NS,
        Timeout: 5 * SECOND_NS,
        StartPeriod: 10 * SECOND_NS,
        Retries: 3,
      },
      Labels: labels(),
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created, created_by: 'npm run image' }],
  }
}

function labels(): Record<string, string> {
  const { SOURCE_REPOSITORY: source, SOURCE_REVISION: revision } = process.env
  const name = 'org.opencontainers.image'
  return {
    [`${name}.title`]: 'sluicegate',
    [`${name}.description`]: 'Rate limit decisions as a service, over HTTP, gRPC and the protocol of Redis',
    [`${name}.version`]: version(),
    [`${name}.licenses`]: 'MIT',
    ...(source !== undefined && { [`${name}.source`]: source }),
    ...(revision !== undefined && { [`${name}.revision`]: revision }),
  }
}

/** A tar archive of paths within a folder: sorted, of no user, of one time. */
function tarOf(folder: string, ...paths: string[]): Buffer {
  const file = `${folder}.tar`
  const same = ['--sort=name', '--format=ustar', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${sourceDateS()}`]
  execFileSync('tar', ['--create', '--file', file, '--directory', folder, ...same, ...paths])
  const content = readFileSync(file)
  rmSync(file)
  return content
}

function architecture(): string {
  return ARCHITECTURES[process.arch] ?? process.arch
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** The user in the image, a number: it may be any other but root. */
export const USER = '65532:65532'

/** Writes all that an image contains into a folder: the executable, the libraries that it links, and what describes both. */
function writeRootFolder({ path, licences, components }: Executable, root: string): void {
  rmSync(root, { recursive: true, force: true })
  const at = (file: string): string => {
    mkdirSync(dirname(`${root}${file}`), { recursive: true, mode: 0o755 })
    return `${root}${file}`
  }
  const put = (file: string, text: string | Buffer): void => writeFileSync(at(file), text, { mode: 0o644 })
  const copy = (file: string, from: string): void => {
    copyFileSync(from, at(file))
    chmodSync(at(file), 0o755)
  }
  const libraries = librariesOf(path)
  const system = systemPackagesOf(libraries)
  copy('/usr/bin/sluicegate', path)
  for (const library of libraries) copy(library, realpathSync(library))
  put('/etc/passwd', 'root:x:0:0:root:/:/sbin/nologin\nsluicegate:x:65532:65532:sluicegate:/:/sbin/nologin\n')
  put('/etc/group', 'root:x:0:\nsluicegate:x:65532:\n')
  put('/etc/os-release', readFileSync('/etc/os-release'))
  put('/etc/sluicegate/sluicegate.yaml', readFileSync(`${ROOT}deploy/config/sluicegate.yaml`))
  put('/usr/share/doc/sluicegate/LICENCES', licences)
  put('/usr/share/doc/sluicegate/sbom.cdx.json', billOfMaterials([...components, ...system.map((each) => each.component)], sourceDateS()))
  for (const { component, status, copyright } of system) {
    put(`/var/lib/dpkg/status.d/${component.name}`, status)
    put(`/usr/share/doc/${component.name}/copyright`, copyright)
  }
}
