import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

const PROGRAM = `
import { createPeer, type CustomLayerContext, simulate, train } from 'admb'
import * as testing from 'admb/testing'

export const used = [createPeer, simulate, train, testing]
/** The types of TensorFlow.js reach a plug-in without its package. */
export const doubled = ({ tf }: CustomLayerContext, values: number[]): number => tf.mul(tf.tensor1d(values), 2).shape[0]
`

/** A folder in which the package is installed with the dependencies of production only, as far as types are concerned. */
async function install(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  for (const name of [...Object.keys(manifest.dependencies), '@types/node']) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'junction')
  }
  for (const part of ['package.json', 'dist/src', 'dist/sim', 'dist/vendor']) {
    await cp(join(root, part), join(modules, 'admb', part), { recursive: true })
  }
}

describe('the types of the package', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-types-'))
    await install(folder)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  // Without `lib`, the types of browsers are known.
  for (const lib of [undefined, ['es2022']]) {
    it(`compile in a strict program with ${lib ?? 'all'} types that checks the declarations of its libraries`, () =>
      compile(lib))
  }

  async function compile(lib: readonly string[] | undefined): Promise<void> {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      strict: true,
      lib,
      skipLibCheck: false,
      noEmit: true
    }
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    await writeFile(join(folder, 'program.ts'), PROGRAM)
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, files: ['program.ts'] })
    )
    const compiler = join(root, 'node_modules/typescript/lib/tsc.js')
    const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', folder]).catch(
      (error: { readonly stdout: string }) => error
    )
    assert.equal(stdout, '')
  }
})
