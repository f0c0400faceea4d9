/** The API reference: docstrings of everything that the package exports, and the examples in them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Documented, exportedSymbols } from '../../support/reference.js'

/** Functions that throw no coded errors. */
const WITHOUT_ERRORS = new Set([
  'quotaOf',
  ...[
    'isAnnouncement',
    'isEndNotice',
    'hasSum',
    'isFragment',
    'isProof',
    'isVoucher',
    'maximumFrameBytes',
    'encodeHead',
    'encodeSaved',
    'encodeParts',
    'encodeSavedBlocks'
  ],
  ...[
    'nextPredictor',
    'startingPredictor',
    'compareIds',
    'formatId',
    'sameId',
    'ruleFor',
    'digest',
    'maxRetainedSums',
    'shapesOf'
  ],
  ...['checkExactly', 'fromParents', 'faultSchedules', 'scenarios', 'trials', 'hostileTrials']
])

/** Entry points, which have an example. */
const ENTRY_POINTS = [
  ...[
    'createPeer',
    'train',
    'simulate',
    'createLearner',
    'createRule',
    'createAveraging',
    'createParser',
    'openStream'
  ],
  ...['AdmbNode', 'SerialTrainer', 'Peer.start']
].map(name => `admb: ${name}`)
const TESTING_ENTRY_POINTS = [
  ...['simulate', 'parseScenario', 'trials', 'scenarios', 'faultSchedules', 'checkExactly', 'fromParents']
].map(name => `admb/testing: ${name}`)

/** Inside the package, so that examples can import it by name. */
const FOLDER = 'dist/reference-examples'

const has = ({ tags }: Documented, tag: string) => tags.some(({ name }) => name === tag)
const names = (symbols: readonly Documented[]) => symbols.map(({ name }) => name)

describe('the API reference', function () {
  this.timeout(60_000)
  let symbols: ReturnType<typeof exportedSymbols>
  before(() => {
    symbols = exportedSymbols()
  })
  after(() => rmSync(FOLDER, { recursive: true, force: true }))

  it('describes every exported symbol', () => {
    assert.ok(symbols.length > 100)
    assert.deepEqual(names(symbols.filter(({ text }) => text.trim() === '')), [])
  })

  it('lists the errors of functions', () => {
    const silent = symbols.filter(symbol => symbol.kind === 'function' && !has(symbol, 'throws'))
    assert.deepEqual(
      names(silent).filter(name => !WITHOUT_ERRORS.has(name.replace(/.*: /, ''))),
      []
    )
  })

  it('states the default of every option', () => {
    const options = symbols.filter(({ name }) => /(Options|Execution)$/.test(name)).flatMap(({ optional }) => optional)
    assert.ok(options.length > 50)
    assert.deepEqual(names(options.filter(option => !has(option, 'default'))), [])
  })

  it('has an example for each entry point', () => {
    const documented = symbols.flatMap(symbol => [symbol, ...symbol.methods])
    const withExample = new Set(names(documented.filter(symbol => has(symbol, 'example'))))
    assert.deepEqual(
      [...ENTRY_POINTS, ...TESTING_ENTRY_POINTS].filter(name => !withExample.has(name)),
      []
    )
  })

  it('has examples that compile', () => {
    const values = symbols
      .filter(({ kind }) => kind !== 'interface' && kind !== 'type')
      .map(({ name }) => name.split(': '))
    const examples = symbols
      .flatMap(symbol => [symbol, ...symbol.methods])
      .flatMap(({ name, tags }) => tags.filter(tag => tag.name === 'example').map(({ text }) => ({ name, text })))
    rmSync(FOLDER, { recursive: true, force: true })
    mkdirSync(FOLDER, { recursive: true })
    for (const [index, { name, text }] of examples.entries()) {
      const [entry] = name.split(':')
      // A name that both entry points export is that of the symbol's own.
      const imported = new Map(values.filter(([from]) => from !== entry).map(([from, value]) => [value, from]))
      for (const [from, value] of values) if (from === entry) imported.set(value, from)
      const used = [...imported].filter(([value]) => new RegExp(`\\b${value}\\b`).test(text))
      const lines = used.map(([value, from]) => `import { ${value} } from '${from}'`)
      if (/\bfc\./.test(text)) lines.push("import fc from 'fast-check'")
      writeFileSync(join(FOLDER, `example${index}.ts`), `// ${name}\n${[...lines, text, 'export {}'].join('\n')}\n`)
    }
    const compilerOptions = {
      ...{ target: 'ES2022', lib: ['ES2023'], module: 'NodeNext', moduleResolution: 'NodeNext', types: ['node'] },
      ...{ strict: true, noEmit: true, skipLibCheck: true }
    }
    writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', FOLDER], { encoding: 'utf8' })
    assert.equal(tsc.stdout, '')
    assert.equal(tsc.status, 0, tsc.stderr)
  })
})
