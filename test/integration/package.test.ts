/** The packed package, started by one command in an empty folder. Skipped without a package registry. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratchFolder } from '../support/scratch.js'

const run = promisify(execFile)

/** Limits of the tarball's size, in bytes, and of what it installs with its dependencies, in bytes and packages. */
const MOST_BYTES = 7_000_000
const MOST_INSTALLED_BYTES = 45_000_000
const MOST_PACKAGES = 40

/** Imports the library and learns with it. */
const LIBRARY = `
import { train } from 'admb'
import { parseScenario } from 'admb/testing'
const { spec } = await train({ inputs: [[1], [2], [1], [2]], labels: [0, 1, 0, 1], features: 1, model: 'logistic' })
console.log(spec.model, typeof parseScenario)`

interface Packed {
  readonly filename: string
  readonly size: number
  readonly files: readonly { readonly path: string }[]
}

function hasRegistry(): boolean {
  try {
    execFileSync('npm', ['ping', '--silent', '--fetch-retries=0', '--fetch-timeout=5000'], { stdio: 'ignore' })
    return true
  } catch {
    console.log('      no package registry answers: skipped')
    return false
  }
}

describe('the packed package', function () {
  this.timeout(300_000)
  const folder = scratchFolder()
  let packed: Packed
  before(async () => {
    // It is built already.
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder])
    packed = (JSON.parse(stdout) as Packed[])[0]
  })

  it('holds what its users need, and nothing else', () => {
    const paths = packed.files.map(({ path }) => path)
    for (const path of [
      'dist/program/admb.js',
      'dist/page/index.html',
      'python/admb_client.py',
      'python/pyproject.toml',
      'python/admb/torch.py',
      'README.md',
      'LICENSE'
    ]) {
      assert.ok(paths.includes(path), path)
    }
    assert.deepEqual(
      paths.filter(path =>
        /\.map$|__pycache__|^(src|test|scripts|dist\/test|dist\/scripts)\/|\.tsbuildinfo$/.test(path)
      ),
      []
    )
    assert.ok(packed.size < MOST_BYTES, `${packed.size} bytes`)
  })

  it('runs by npx in an empty folder, and leaves it empty', async function () {
    if (!hasRegistry()) this.skip()
    const empty = mkdtempSync(join(tmpdir(), 'admb-empty-'))
    try {
      const tarball = join(folder, packed.filename)
      // A cache of its own for what npx installs; what the registry served before need not be loaded again.
      const cache = join(folder, 'cache')
      const known = (await run('npm', ['config', 'get', 'cache'])).stdout.trim()
      mkdirSync(cache)
      symlinkSync(join(known, '_cacache'), join(cache, '_cacache'))
      const env = { ...process.env, npm_config_cache: cache, npm_config_prefer_offline: 'true' }
      const admb = (...args: string[]) =>
        run('npx', ['--yes', '--package', tarball, 'admb', ...args], { cwd: empty, env })
      const { stdout, stderr } = await admb('train', '--data', 'digits', '--limit', '500')
      assert.doesNotMatch(stderr, /EBADENGINE/)
      assert.match(stdout, /accuracy +[5-9]\d\.\d+ %/)
      assert.match((await admb('train', '--data', 'digits', '--limit', '64', '--model', 'mlp')).stdout, /device +wasm/)
      // Fails if a port is in use, which does not matter.
      const checked = await admb('doctor', '--json').catch((error: { stdout: string }) => error)
      const { checks } = JSON.parse(checked.stdout) as { checks: { name: string; ok: boolean }[] }
      for (const name of ['network', 'storage']) assert.ok(checks.find(check => check.name === name)?.ok, name)
      assert.deepEqual(readdirSync(empty), [])
      const [place] = readdirSync(join(cache, '_npx'))
      await checkInstalled(join(cache, '_npx', place))
    } finally {
      rmSync(empty, { recursive: true })
    }
  })
})

async function checkInstalled(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  rmSync(join(modules, 'admb/dist/program/cache'), { recursive: true, force: true })
  const files = readdirSync(modules, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
  assert.ok(bytes < MOST_INSTALLED_BYTES, `${bytes} bytes`)
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: object }
  const packages = Object.keys(lock.packages).length
  assert.ok(packages < MOST_PACKAGES, `${packages} packages`)
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', LIBRARY], { cwd: folder })
  assert.equal(stdout.trim(), 'logistic function')
}
