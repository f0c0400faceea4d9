/** The recipes for contributors, followed as written: applied to a copy of the sources, compiled, linted and run. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { read } from '../support/documents.js'
import { applyBlock, recipeBlocks } from '../support/recipes.js'
import { scratchFolder } from '../support/scratch.js'

const COPIED = ['src', 'sim', 'test', 'scripts', 'dist', 'package.json', 'tsconfig.json', 'biome.json']
/** Links, and what other tests write. */
const SKIPPED = /(^|\/)node_modules$|^dist\/(mutants|reference|reference-examples|testing-page)$/

describe('the recipes', function () {
  this.timeout(300_000)
  const blocks = ['recipes', 'recipes-layer'].flatMap(name => recipeBlocks(read(`docs/guides/${name}.md`)))
  const root = scratchFolder()
  let env: NodeJS.ProcessEnv

  /** @returns stdout; throws with stdout and stderr if a command fails */
  const bash = (commands: string): string => {
    try {
      return execFileSync('bash', ['-euc', commands], {
        cwd: root,
        env,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe']
      })
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      return assert.fail(`${commands}\n${stdout}\n${stderr}`)
    }
  }
  const run = (recipe: string): string[] => {
    const commands = blocks.filter(({ kind, target }) => kind === 'run' && target === recipe)
    return commands.map(({ text }) => bash(text))
  }

  before(() => {
    for (const path of COPIED) {
      cpSync(path, join(root, path), { recursive: true, filter: source => !SKIPPED.test(source) })
    }
    for (const folder of ['node_modules', 'scripts/reference/node_modules', 'data'])
      symlinkSync(resolve(folder), join(root, folder))
    const bin = join(root, 'bin')
    mkdirSync(bin)
    const npx = `#!/bin/sh
case "$1" in
  admb) shift; exec '${process.execPath}' '${root}/dist/program/admb.js' "$@" ;;
  mocha) shift; exec '${process.execPath}' '${root}/node_modules/mocha/bin/mocha.js' "$@" ;;
esac
exit 1
`
    writeFileSync(join(bin, 'npx'), npx, { mode: 0o755 })
    env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, NO_COLOR: '1' }

    for (const block of blocks) if (block.kind !== 'run') applyBlock(block, root)
    bash('node_modules/.bin/tsc --build tsconfig.json')
  })

  it('pass the linter', () => {
    const files = blocks.filter(({ target }) => target.endsWith('.ts')).map(({ target }) => target)
    bash(`node_modules/.bin/biome check --error-on-warnings ${files.join(' ')}`)
  })

  it('add an update rule', () => {
    const [all, printed] = run('rule')
    assert.match(all, /sign-sgd.* is pure and replays to equal bits/)
    assert.match(printed, /1 passing/)
    assert.match(printed, /gradient descent by the sign of the gradient/)
    assert.ok(accuracy(printed) > 80, printed)
  })

  it('add a network layer', () => {
    const [tested, printed] = run('layer')
    assert.match(tested, /[3-9] passing/)
    assert.ok(accuracy(printed) > 50, printed)
  })

  it('add a command', () => {
    const [printed] = run('command')
    assert.match(printed, /^model +softmax, [\d,]+ parameters\nupdates +[1-9]\d*\nnorm +\d/m)
    assert.equal(JSON.parse(printed.trimEnd().split('\n').at(-1) as string).command, 'inspect')
    assert.match(bash('npx admb --help'), /inspect +print facts about a stored predictor/)
  })

  it('add a simulator algorithm', () => {
    const [printed] = run('algorithm')
    assert.match(printed, /^neighbours .*\d/m)
  })

  it('contain no command that this test does not run', () => {
    const recipes = new Set(blocks.filter(({ kind }) => kind === 'run').map(({ target }) => target))
    assert.deepEqual([...recipes], ['rule', 'command', 'layer', 'algorithm'])
  })
})

/** Progressive accuracy in per cent. */
function accuracy(printed: string): number {
  return Number(/accuracy +([\d.]+) %/.exec(printed)?.[1])
}
