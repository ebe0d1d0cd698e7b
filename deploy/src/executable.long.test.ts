import assert from 'node:assert/strict'
import { before } from 'node:test'
import { buildExecutable, type Executable } from './executable/executable.js'
import { debianTests } from './testing/debian-tests.js'
import { executableTests } from './testing/executable-tests.js'
import { imageTests } from './testing/image-tests.js'

// The executable is built once; each of these forms has it. They need root, as a root folder, a network and systemd of their own do.

let built: Executable

before(async () => {
  assert.equal(process.getuid?.(), 0, 'these tests need root: chroot, unshare and systemd-nspawn')
  built = await buildExecutable()
})

executableTests(() => built)
imageTests(() => built)
debianTests(() => built)
