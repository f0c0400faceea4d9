/**
 * Checks that imports follow the table of modules in `docs/architecture.md`. dependency-cruiser follows values through the
 * compiled output, because it has no parser for TypeScript 7. Imports of types leave no trace there and are read from the
 * sources. A check that found no modules would always pass, so that is an error as well.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser'

interface Module {
  /** Modules whose code it may call. */
  readonly values: readonly string[]
  /** Further modules of which it may import types. */
  readonly types?: readonly string[]
  /** Whether only Vite builds it, so that it is not in the compiled output. */
  readonly isBundled?: boolean
}

/** The table of `docs/architecture.md`, by folder. A module may always import itself; a nested one is a module of its own. */
export const MODULES: Readonly<Record<string, Module>> = {
  'src/base': { values: [] },
  'src/numeric': { values: [] },
  'src/platform': { values: ['src/base'] },
  'src/admb': { values: ['src/base', 'src/numeric', 'src/platform'], types: ['src/learning'] },
  'src/overlay': { values: ['src/base'] },
  'src/learning': { values: ['src/base', 'src/numeric', 'src/platform'] },
  'src/device': { values: ['src/base', 'src/numeric'] },
  'src/nn': { values: ['src/base', 'src/platform', 'src/device'], types: ['src/learning'] },
  'src/l2l': { values: ['src/base', 'src/numeric', 'src/platform', 'src/learning', 'src/device', 'src/nn'] },
  'src/data': { values: ['src/base', 'src/numeric', 'src/platform'], types: ['src/learning'] },
  'src/task': { values: ['src/base', 'src/learning', 'src/nn', 'src/l2l', 'src/data'], types: ['src/admb'] },
  'src/network': { values: ['src/base', 'src/platform'], types: ['src/admb', 'src/overlay'] },
  'src/storage': { values: ['src/base'], types: ['src/admb'] },
  'src/program': { values: ['src/base'], types: ['src/learning'] },
  'src/view': { values: ['src/base', 'src/platform'] },
  'src/peer': {
    values: [
      'src/base',
      'src/numeric',
      'src/platform',
      'src/admb',
      'src/overlay',
      'src/learning',
      'src/device',
      'src/nn',
      'src/l2l',
      'src/data',
      'src/task',
      'src/program',
      'src/network',
      'src/storage',
      'src/view'
    ]
  },
  'src/page': { values: ['src/numeric', 'src/view'] },
  'src/page/join': { values: ['src/data', 'src/browser', 'src/page'], types: ['src/view'] },
  'src/page/simulator': { values: ['src/admb', 'src/page', 'sim'] },
  'src/server': { values: ['src/base', 'src/data', 'src/learning', 'src/peer', 'src/view'] },
  sim: { values: ['src/base', 'src/numeric', 'src/admb', 'src/overlay', 'src/learning', 'src/view'] },
  'sim/report': { values: ['src/numeric', 'sim'], types: ['src/admb'] },
  'src/browser': {
    values: [
      'src/base',
      'src/numeric',
      'src/platform',
      'src/learning',
      'src/device',
      'src/nn',
      'src/l2l',
      'src/network',
      'src/storage',
      'src/task',
      'src/program',
      'src/peer'
    ],
    isBundled: true
  },
  'src/library': {
    values: ['src/base', 'src/learning', 'src/nn', 'src/l2l', 'src/data', 'src/task', 'src/peer', 'src/server', 'sim']
  },
  'src/cli': {
    values: [
      'src/base',
      'src/numeric',
      'src/admb',
      'src/overlay',
      'src/learning',
      'src/device',
      'src/nn',
      'src/l2l',
      'src/data',
      'src/task',
      'src/program',
      'src/network',
      'src/storage',
      'src/view',
      'src/peer',
      'src/server',
      'src/library',
      'sim',
      'sim/report'
    ]
  }
}

/** Returns one line per forbidden import, or the reason why imports cannot be read. */
export async function checkImports(root: string): Promise<string[]> {
  return [...checkTypes(root), ...(await checkValues(root))]
}

async function checkValues(root: string): Promise<string[]> {
  if (!existsSync(join(root, 'dist/src'))) return ['there is no dist/src to look at: build first (npx tsc --build)']
  const options = {
    baseDir: root,
    validate: true,
    ruleSet: { forbidden: forbidden() },
    doNotFollow: { path: ['node_modules', '^dist/vendor/'] },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] }
  }
  const folders = ['dist/src', 'dist/sim'].filter(folder => existsSync(join(root, folder)))
  const { output } = await cruise(folders, options)
  const { modules, summary } = output as ICruiseResult
  const seen = new Set(modules.map(({ source }) => moduleOf(posix.relative('dist', source))))
  const unseen = Object.keys(MODULES).filter(module => !MODULES[module].isBundled && !seen.has(module))
  return [
    ...unseen.map(module => `dependency-cruiser saw no file of dist/${module}: build first (npx tsc --build)`),
    ...summary.violations.map(({ from, to, rule }) => `${from} imports ${to}: ${rule.name}`)
  ]
}

function forbidden(): IForbiddenRuleType[] {
  const modules = Object.entries(MODULES).map(([module, { values }]) => {
    const nested = Object.keys(MODULES).filter(other => other.startsWith(`${module}/`))
    return {
      name: `${module} may import only ${[module, ...values].join(', ')}`,
      severity: 'error' as const,
      from: { path: pattern([module]), ...(nested.length > 0 && { pathNot: pattern(nested) }) },
      // `dist/vendor` holds packages.
      to: { path: '^dist/(?!vendor/)', pathNot: pattern([module, ...values]) }
    }
  })
  return [
    ...modules,
    {
      name: 'sim must not need its reports',
      severity: 'error',
      from: { path: pattern(['sim']), pathNot: pattern(['sim/report']) },
      to: { path: pattern(['sim/report']) }
    },
    {
      name: 'a network can be described without loading TensorFlow.js',
      severity: 'error',
      from: { path: pattern(['src/nn/spec']) },
      to: { path: 'node_modules/@tensorflow|dist/vendor/tfjs', reachable: true }
    },
    { name: 'imports must not form a circle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'the import leads nowhere', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'a package must be in package.json',
      severity: 'error',
      from: { path: '^dist/(src|sim)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] }
    }
  ]
}

function pattern(modules: readonly string[]): string {
  return `^dist/(${modules.join('|')})/`
}

/** Imports of types as well: their directions, and circles. */
function checkTypes(root: string): string[] {
  const graph = new Map(
    sourcesOf(root).map(file => [
      file,
      importsOf(readFileSync(join(root, file), 'utf8')).map(target =>
        posix.join(posix.dirname(file), target).replace(/\.js$/, '.ts')
      )
    ])
  )
  return [...[...graph].flatMap(([file, targets]) => checkDirections(file, targets)), ...circlesOf(graph)]
}

function checkDirections(file: string, targets: readonly string[]): string[] {
  const name = moduleOf(file)
  if (name === undefined) return file.split('/').length > 2 ? [`${file} is in no module of the table`] : []
  const { values, types = [] } = MODULES[name]
  const allowed = [name, ...values, ...types]
  return targets
    .filter(target => !allowed.includes(moduleOf(target) ?? target))
    .map(target => `${file} imports ${target}: ${name} may import only ${allowed.join(', ')}`)
}

/** One line for each import that closes a circle. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = []
  const finished = new Set<string>()
  const path: string[] = []
  const visit = (file: string) => {
    if (finished.has(file)) return
    if (path.includes(file)) {
      found.push(`imports must not form a circle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
      return
    }
    path.push(file)
    for (const target of graph.get(file) ?? []) visit(target)
    path.pop()
    finished.add(file)
  }
  for (const file of graph.keys()) visit(file)
  return found
}

/** All sources below `src` and `sim`, as paths from the root. */
function sourcesOf(root: string): string[] {
  return ['src', 'sim']
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(file =>
        posix.join(folder, file.replaceAll('\\', '/'))
      )
    )
    .filter(file => file.endsWith('.ts'))
}

/** Relative targets of all import and export declarations, and of `import(…)`. */
function importsOf(source: string): string[] {
  return [...source.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(match => match[1])
}

/** The innermost module that holds a file. @param path from the root of the sources, or of `dist` */
function moduleOf(path: string): string | undefined {
  return Object.keys(MODULES)
    .filter(module => path.startsWith(`${module}/`))
    .sort((a, b) => b.length - a.length)[0]
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const violations = await checkImports(process.cwd())
  for (const violation of violations) console.error(violation)
  console.log(
    `import directions: ${violations.length === 0 ? 'as the table allows' : `${violations.length} violations`}`
  )
  process.exitCode = violations.length === 0 ? 0 : 1
}
