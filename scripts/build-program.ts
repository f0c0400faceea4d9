/**
 * Builds `dist/program`: the command line and its threads, each with what it imports in a few files. Loading a thousand modules
 * takes twice as long as these files take. They are scripts, whose compiled code `src/cli/start.ts` can keep, unlike that of modules.
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
/** Written last. */
const LICENSES = join(out, 'LICENSES.txt')

/** Packages that find their addons and threads by their own location. */
const SEPARATE = ['level', 'koffi']
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
  const parts = await buildScripts(named.keys(), 'part-[name]-[hash].cjs')
  await buildScripts([loader], 'start.cjs')
  const { commandNames } = (await import(pathToFileURL(join(source, 'cli/commands/index.js')).href)) as Commands
  for (const [path, name] of named) {
    const part = parts.find(({ facadeModuleId }) => facadeModuleId === path)?.fileName
    const call = path === main ? `start('${part}', ${JSON.stringify(commandNames)})` : `start('${part}')`
    writeFileSync(join(out, name), path === main ? program(call) : `require('./start.cjs').${call}\n`)
  }
  chmodSync(join(out, 'admb.js'), 0o755)
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  writeFileSync(LICENSES, licences(Object.keys(dependencies).filter(name => !SEPARATE.includes(name))))
}

/** The package consists of modules, so this file is one. */
function program(call: string): string {
  const lines = [
    '#!/usr/bin/env node',
    "import { createRequire } from 'node:module'",
    `createRequire(import.meta.url)('./start.cjs').${call}`
  ]
  return `${lines.join('\n')}\n`
}

async function buildScripts(inputs: Iterable<string>, fileNames: string): Promise<readonly Rolldown.OutputChunk[]> {
  const built = await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [locations],
    ssr: { noExternal: true, external: SEPARATE },
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
          dynamicImportInCjs: false,
          entryFileNames: fileNames,
          chunkFileNames: 'part-[name]-[hash].cjs',
          // Names stay, for reports of errors.
          minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } }
        }
      }
    }
  })
  return (built as Rolldown.RolldownOutput).output.filter(file => file.type === 'chunk')
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
