/**
 * Builds `dist/program`: the command line and its threads, each with what it imports in a few files. Loading a thousand modules
 * takes twice as long as these files take, which is most of the time in which a command starts.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'
import { licences } from './licences.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const source = join(root, 'dist/src')
const out = join(root, 'dist/program')
const simulator = join(root, 'dist/sim')
const main = join(source, 'cli/main.js')
/** Written last. */
const LICENSES = join(out, 'LICENSES.txt')

/** Packages that find their addons and threads by their own location. */
const SEPARATE = ['level', 'koffi', 'pino']
const LOCATION = /new URL\('([^']+)', import\.meta\.url\)|import\.meta\.url/g
const THREAD = /new Worker\(new URL\('([^']+)', import\.meta\.url\)/g

/** The modules that processes and threads start with, by name. */
function entries(): ReadonlyMap<string, string> {
  const found = new Map([[main, 'admb']])
  for (const file of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue
    const path = join(source, file)
    for (const [, thread] of readFileSync(path, 'utf8').matchAll(THREAD)) {
      const entry = resolve(dirname(path), thread)
      found.set(entry, relative(source, entry).replaceAll(/[\\/]/g, '-').replace(/\.js$/, ''))
    }
  }
  return found
}

const named = entries()

/** Modules find entries beside the bundle, and other files from where they were compiled. */
const locations: Plugin = {
  name: 'locations',
  transform(code, id) {
    if (!id.startsWith(source) && !id.startsWith(simulator)) return
    const here = `new URL('${relative(out, id).replaceAll('\\', '/')}', import.meta.url).href`
    return code.replaceAll(LOCATION, (_, to?: string) => {
      const name = to && named.get(resolve(dirname(id), to))
      if (name) return `new URL('./${name}.js', import.meta.url)`
      return to ? `new URL('${to}', ${here})` : here
    })
  }
}

async function bundle(): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [locations],
    ssr: { noExternal: true, external: SEPARATE },
    build: {
      ssr: true,
      outDir: out,
      copyPublicDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries([...named].map(([path, name]) => [name, path])),
        external: [/^#tfjs/, ...SEPARATE],
        output: {
          entryFileNames: '[name].js',
          chunkFileNames: 'part-[name]-[hash].js',
          // Names stay, for reports of errors.
          minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } }
        }
      }
    }
  })
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  writeFileSync(LICENSES, licences(Object.keys(dependencies).filter(name => !SEPARATE.includes(name))))
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
