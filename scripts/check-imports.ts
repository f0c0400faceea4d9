/**
 * Checks that imports go only where `docs/architecture.md` lets them. Values are followed by dependency-cruiser through the
 * compiled output, because it has no parser for TypeScript 7; imports of types leave no trace there and are read from
 * the sources. A check that saw no module would pass whatever the code says, so that is a failure as well.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser'

interface Room {
  /** Rooms whose code it may call. */
  readonly values: readonly string[]
  /** Rooms of which it may know the types, too. */
  readonly types: readonly string[]
}

/** The table of `docs/architecture.md`. A room may always import itself. All but `sim` lie in `src`. */
export const ROOMS: Readonly<Record<string, Room>> = {
  sim: { values: ['admb', 'overlay', 'learner'], types: [] },
  admb: { values: [], types: ['learner'] },
  overlay: { values: [], types: [] },
  learner: { values: [], types: [] },
  device: { values: [], types: [] },
  l2l: { values: ['learner', 'device'], types: [] },
  streams: { values: [], types: ['learner'] },
  network: { values: [], types: ['admb', 'overlay'] },
  storage: { values: [], types: ['admb'] },
  view: { values: [], types: [] },
  peer: { values: ['admb', 'overlay', 'learner', 'l2l', 'streams', 'network', 'storage', 'view'], types: [] },
  page: { values: ['view'], types: [] },
  server: { values: ['peer'], types: ['view'] },
  library: { values: ['learner', 'l2l', 'streams', 'peer', 'server', 'sim'], types: [] },
  report: { values: ['sim'], types: ['admb'] },
  cli: {
    values: [
      'admb',
      'overlay',
      'learner',
      'device',
      'l2l',
      'streams',
      'network',
      'storage',
      'view',
      'peer',
      'server',
      'library',
      'sim',
      'report'
    ],
    types: []
  }
}

/** One line for each import that goes where it may not, and for whatever keeps the check from seeing the imports. */
export async function checkImports(root: string): Promise<string[]> {
  return [...checkTypes(root), ...(await checkValues(root))]
}

async function checkValues(root: string): Promise<string[]> {
  if (!existsSync(join(root, 'dist/src'))) return ['there is no dist/src to look at: build first (npx tsc --build)']
  const options = {
    baseDir: root,
    validate: true,
    ruleSet: { forbidden: forbidden() },
    doNotFollow: 'node_modules',
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] }
  }
  const folders = ['dist/src', 'dist/sim'].filter(folder => existsSync(join(root, folder)))
  const { output } = await cruise(folders, options)
  const { modules, summary } = output as ICruiseResult
  const seen = new Set(modules.map(({ source }) => roomOf(posix.relative('dist', source))))
  const unseen = Object.keys(ROOMS).filter(room => !seen.has(room))
  return [
    ...unseen.map(room => `dependency-cruiser saw no module of dist/${folderOf(room)}: build first (npx tsc --build)`),
    ...summary.violations.map(({ from, to, rule }) => `${from} imports ${to}: ${rule.name}`)
  ]
}

function forbidden(): IForbiddenRuleType[] {
  const rooms = Object.entries(ROOMS).map(([room, { values }]) => ({
    name: `${room} may import only ${[room, ...values].join(', ')}`,
    severity: 'error' as const,
    from: { path: `^dist/${folderOf(room)}/` },
    to: { path: '^dist/', pathNot: `^dist/(${[room, ...values].map(folderOf).join('|')})/` }
  }))
  return [
    ...rooms,
    { name: 'imports must not form a circle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'the import leads nowhere', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'the program must not need a development dependency',
      severity: 'error',
      from: { path: '^dist/(src|sim)/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] }
    }
  ]
}

function checkTypes(root: string): string[] {
  return sourcesOf(root).flatMap(file => {
    const own = roomOf(file)
    const room = ROOMS[own]
    if (room === undefined) return file.split('/').length > 2 ? [`${file} is in no room of the table`] : []
    const allowed = [own, ...room.values, ...room.types]
    return importsOf(readFileSync(join(root, file), 'utf8'))
      .map(target => posix.join(posix.dirname(file), target))
      .filter(target => !allowed.includes(roomOf(target)))
      .map(target => `${file} imports ${target}: ${own} may know only ${allowed.join(', ')}`)
  })
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

function folderOf(room: string): string {
  return room === 'sim' ? 'sim' : `src/${room}`
}

/** @param path from the root of the sources, or of `dist` */
function roomOf(path: string): string {
  const [first, second] = path.split('/')
  return first === 'src' ? second : first
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const violations = await checkImports(process.cwd())
  for (const violation of violations) console.error(violation)
  console.log(
    `import directions: ${violations.length === 0 ? 'as the table allows' : `${violations.length} violations`}`
  )
  process.exitCode = violations.length === 0 ? 0 : 1
}
