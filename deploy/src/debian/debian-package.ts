import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Executable, filesBelow } from '../executable/executable.js'
import { BUILT, ROOT, sourceDateS, version } from '../software.js'
import { bashCompletion, helpTexts, manPage } from './help-texts.js'

/** What Debian calls the processors for which there is an executable. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const MAINTAINER = 'The maintainers of Sluicegate <sluicegate@users.noreply.github.com>'

/** How the archive is compressed. */
export type Compression = 'xz' | 'gzip'

/** A package that was built. */
export interface DebianPackage {
  readonly path: string
  readonly bytes: number
}

/** Builds the package for Debian and Ubuntu of an executable. Needs dpkg-deb, which both have. */
export function buildDebianPackage({ path: executable, licences }: Executable, compression: Compression = 'xz'): DebianPackage {
  const tree = `${BUILT}deb`
  rmSync(tree, { recursive: true, force: true })
  const architecture = ARCHITECTURES[process.arch] ?? process.arch
  const put = (path: string, text: string | Buffer, mode = 0o644): void => {
    mkdirSync(dirname(`${tree}/${path}`), { recursive: true, mode: 0o755 })
    writeFileSync(`${tree}/${path}`, text, { mode })
    chmodSync(`${tree}/${path}`, mode)
  }
  const source = (name: string): Buffer => readFileSync(`${ROOT}deploy/${name}`)
  const help = helpTexts(executable)
  put('usr/share/man/man1/sluicegate.1.gz', packed(manPage(help, version())))
  put('usr/share/bash-completion/completions/sluicegate', bashCompletion(help))
  put('lib/systemd/system/sluicegate.service', source('debian/sluicegate.service'))
  put('etc/default/sluicegate', source('debian/default'))
  put('etc/sluicegate/sluicegate.yaml', source('config/sluicegate.yaml'))
  put('usr/share/doc/sluicegate/copyright', copyright())
  put('usr/share/doc/sluicegate/LICENCES.gz', packed(licences))
  put('usr/share/doc/sluicegate/CHANGELOG.md.gz', packed(readFileSync(`${ROOT}CHANGELOG.md`)))
  put('usr/share/doc/sluicegate/changelog.gz', packed(changelog()))
  put('usr/share/lintian/overrides/sluicegate', source('debian/lintian-overrides'))
  mkdirSync(`${tree}/usr/bin`)
  copyFileSync(executable, `${tree}/usr/bin/sluicegate`)
  chmodSync(`${tree}/usr/bin/sluicegate`, 0o755)
  const kilobytes = Math.ceil(filesBelow(tree).reduce((sum, file) => sum + statSync(file).size, 0) / 1_024)
  put('DEBIAN/control', control(architecture, kilobytes))
  put('DEBIAN/conffiles', '/etc/default/sluicegate\n/etc/sluicegate/sluicegate.yaml\n')
  for (const script of ['postinst', 'prerm', 'postrm']) put(`DEBIAN/${script}`, source(`debian/${script}`), 0o755)
  const path = `${BUILT}sluicegate_${version()}_${architecture}.deb`
  const options = compression === 'xz' ? ['-Zxz', '-z6'] : ['-Zgzip', '-z1']
  execFileSync('dpkg-deb', ['--root-owner-group', ...options, '--build', tree, path], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(sourceDateS()) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return { path, bytes: statSync(path).size }
}

function control(architecture: string, kilobytes: number): string {
  return `Package: sluicegate
Version: ${version()}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 7)
Section: net
Priority: optional
Description: rate limit decisions as a service
 Sluicegate answers whether a request is within its limit: exact token buckets,
 windows, logs and permits, over HTTP, over gRPC as the rate limit service of
 Envoy, and over the protocol of Redis. Keys are in memory, or in Redis or
 Valkey, where several services share them.
 .
 This package contains the program with its runtime in one file, and a service
 of systemd that runs it as a user of its own.
`
}

function copyright(): string {
  return `${readFileSync(`${ROOT}LICENSE`, 'utf8').trimEnd()}

The program contains Node.js and other packages. Their licences are in
/usr/share/doc/sluicegate/LICENCES.gz.
`
}

/** In the form that Debian's tools read. */
function changelog(): string {
  const date = new Date(sourceDateS() * 1_000).toUTCString().replace('GMT', '+0000')
  return `sluicegate (${version()}) unstable; urgency=medium

  * See /usr/share/doc/sluicegate/CHANGELOG.md.gz.

 -- ${MAINTAINER}  ${date}
`
}

/** Without the time and the name of a file. */
function packed(text: string | Buffer): Buffer {
  return gzipSync(text, { level: 9 })
}
