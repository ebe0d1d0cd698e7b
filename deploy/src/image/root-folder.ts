import { chmodSync, copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Executable, librariesOf } from '../executable/executable.js'
import { ROOT, sourceDateS } from '../made-with.js'
import { billOfMaterials, systemPackagesOf } from '../software.js'

/** The user in the image, a number: it may be any other but root. */
export const USER = '65532:65532'

/** Writes all that an image contains into a folder: the executable, the libraries that it links, and what describes both. */
export function writeRootFolder({ path, licences, components }: Executable, root: string): void {
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
