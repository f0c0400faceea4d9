/**
 * Builds `dist/program`: the command line, the library and their threads, each with what it imports in a few files. Loading a thousand
 * modules takes twice as long as these files take, and the packages need not be installed. They are scripts, whose compiled code `src/cli/start.ts` can keep, unlike that of modules.
 */
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin, type Rolldown } from 'vite'
import { licences } from './licences.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const source = join(root, 'dist/src')
const out = join(root, 'dist/program')
const simulator = join(root, 'dist/sim')
const main = join(source, 'cli/main.js')
/** Loads the other files. */
const loader = join(source, 'cli/start.js')
/** Modules that programs import, and their names. */
const libraries = new Map([
  [join(source, 'index.js'), 'library.js'],
  [join(simulator, 'testing/index.js'), 'testing.js']
])
/** Written last. */
const LICENSES = join(out, 'LICENSES.txt')

/** What is installed with the package: packages that find their addons by their own location, and one whose values programs combine with ours. */
const SEPARATE = installed()
/** The package of a file. */
const PACKAGE = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/
/** A package that is loaded late, and is part of the bundle. */
const LATE = /createRequire\(import\.meta\.url\)\('(yaml)'\)/g
const LOCATION = /new URL\('([^']+)', import\.meta\.url\)|import\.meta\.url/g
/** An import of what is known only when it runs, which a script with kept code cannot do. */
const IMPORT = /\bimport\((?!['"`])/g
const THREAD = /new Worker\(new URL\('([^']+)', import\.meta\.url\)/g

/** The modules that processes and threads start with, and the files of the bundle. */
function entries(): ReadonlyMap<string, string> {
  const found = new Map([[main, 'admb.js']])
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue
    const path = join(source, file)
    for (const [, thread] of readFileSync(path, 'utf8').matchAll(THREAD)) {
      const entry = resolve(dirname(path), thread)
      found.set(entry, relative(source, entry).replaceAll(/[\\/]/g, '-').replace(/\.js$/, '.cjs'))
    }
  }
  return found
}

function installed(): readonly string[] {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.keys({ ...dependencies, ...optionalDependencies })
}

interface Commands {
  readonly commandNames: readonly string[]
}

const named = entries()

/** Modules find entries beside the bundle, and other files from where they were compiled. */
const locations: Plugin = {
  name: 'locations',
  transform(code, id) {
    if ((!id.startsWith(source) && !id.startsWith(simulator)) || id === loader) return
    const here = `new URL('${relative(out, id).replaceAll('\\', '/')}', import.meta.url).href`
    return code
      .replaceAll(LATE, "require('$1')")
      .replaceAll(LOCATION, (_, to?: string) => {
        const name = to && named.get(resolve(dirname(id), to))
        if (name) return `new URL('./${name}', import.meta.url)`
        return to ? `new URL('${to}', ${here})` : here
      })
      .replaceAll(IMPORT, 'importModule(')
  }
}

async function bundle(): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const parts = await buildScripts([...named.keys(), ...libraries.keys()], 'part-[name]-[hash].cjs')
  await buildScripts([loader], 'start.cjs', true)
  const { commandNames } = (await import(pathToFileURL(join(source, 'cli/commands/index.js')).href)) as Commands
  const partOf = (path: string) => parts.find(part => part.facadeModuleId === path) as Rolldown.OutputChunk
  for (const [path, name] of named) {
    const part = partOf(path).fileName
    const call = path === main ? `start('${part}', ${JSON.stringify(commandNames)})` : `start('${part}')`
    writeFileSync(
      join(out, name),
      path === main ? `#!/usr/bin/env node\n${module(call)}` : `require('./start.cjs').${call}\n`
    )
  }
  for (const [path, name] of libraries) {
    const { fileName, exports } = partOf(path)
    writeFileSync(join(out, name), `export const { ${exports.join(', ')} } = ${module(`load('${fileName}')`)}`)
  }
  chmodSync(join(out, 'admb.js'), 0o755)
  const bundled = parts.flatMap(({ moduleIds }) => moduleIds.flatMap(id => PACKAGE.exec(id)?.[1] ?? []))
  writeFileSync(LICENSES, licences([...new Set(bundled)]))
}

/** The package consists of modules, so these files are some. */
function module(call: string): string {
  return `process.getBuiltinModule('node:module').createRequire(import.meta.url)('./start.cjs').${call}\n`
}

/** @param imports whether imports of what is known only when it runs stay */
async function buildScripts(
  inputs: Iterable<string>,
  fileNames: string,
  imports = false
): Promise<readonly Rolldown.OutputChunk[]> {
  const built = await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [locations],
    ssr: { noExternal: true, external: [...SEPARATE] },
    build: {
      ssr: true,
      outDir: out,
      emptyOutDir: false,
      copyPublicDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: [...inputs],
        external: [/^#tfjs/, ...SEPARATE],
        output: {
          format: 'cjs',
          dynamicImportInCjs: imports,
          entryFileNames: fileNames,
          chunkFileNames: 'part-[name]-[hash].cjs',
          // Names stay, for reports of errors. White space would be 6 MB of memory in each thread.
          minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } }
        }
      }
    }
  })
  const chunks = (built as Rolldown.RolldownOutput).output.filter(file => file.type === 'chunk')
  for (const { fileName, code } of chunks) writeFileSync(join(out, fileName), inAscii(code))
  return chunks
}

/** V8 keeps a script with a character beyond Latin-1 in two bytes for each of its characters, in each thread. */
function inAscii(code: string): string {
  return code.replace(/[\u0080-\uffff]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** When a file was changed, in ms; 0 if it does not exist. */
function modified(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** Whether nothing that the bundle contains is newer. */
function isCurrent(): boolean {
  const built = modified(LICENSES)
  const folders = [source, simulator].flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => join(folder, file))
  )
  const lock = join(root, 'package-lock.json')
  return [...folders, lock, fileURLToPath(import.meta.url)].every(file => modified(file) < built)
}

if (!isCurrent()) await bundle()
