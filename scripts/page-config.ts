/** How Vite builds the pages: one script and one style sheet each, without external content, and without what browsers lack. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { InlineConfig, Plugin } from 'vite'
import { parseScenario } from '../sim/scenario.js'
import { builtInScenarios, loadScenario } from '../sim/scenarios.js'
import { type BuiltIn, CONTROLS } from '../src/page/simulator/controls.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Packages that replace modules of Node.js. */
const REPLACED: Readonly<Record<string, string>> = { 'node:events': 'events/events.js' }

/**
 * Fails on modules of Node.js that are used, and on uses of `process` in own code, instead of leaving holes in the bundle. What
 * `#…` in `package.json` chooses is taken from the sources, so that each module is in the bundle once.
 */
function browserOnly(): Plugin {
  const importers = new Map<string, Set<string>>()
  return {
    name: 'browser-only',
    enforce: 'pre',
    async resolveId(source, importer, options) {
      if (source in REPLACED) return this.resolve(REPLACED[source], `${root}package.json`, { skipSelf: true })
      if (isNode(source)) {
        importers.set(source, (importers.get(source) ?? new Set()).add(importer ?? 'the page'))
        // Left out if nothing uses it.
        return { id: source, external: true, moduleSideEffects: false }
      }
      if (importer === undefined || !isOwn(importer) || !/^[#.]/.test(source)) return
      const seam = imports[source]?.browser?.replace('./dist/', root).replace(/\.js$/, '.ts')
      const resolved = await this.resolve(seam ?? source, importer, { ...options, skipSelf: true })
      if (resolved === null || !isOwn(resolved.id)) return resolved
      // Modules of the program only define something, except for polyfills.
      const isQuiet = /\/(?:src|sim)\/(?!page\/).*\.ts$/.test(resolved.id) && !/polyfill/.test(resolved.id)
      return { ...resolved, ...(isQuiet && { moduleSideEffects: false }) }
    },
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue
        for (const name of [...chunk.imports, ...chunk.dynamicImports].filter(isNode)) {
          const from = [...(importers.get(name) ?? [])].map(file => file.replace(root, '')).join(', ')
          this.error(`${chunk.fileName} needs ${name}, which browsers do not have (imported by ${from}); ${ADVICE}`)
        }
        for (const [id, { code }] of Object.entries(chunk.modules)) {
          const [use] = (isOwn(id) && /\bprocess\.\w+/.exec(code ?? '')) || []
          if (use !== undefined)
            this.error(`${id.replace(root, '')} uses ${use}, which browsers do not have; ${ADVICE}`)
        }
      }
    }
  }
}

const ADVICE = 'put what needs it behind #platform'
const isNode = (source: string) => source.startsWith('node:')
const isOwn = (id: string) => id.startsWith(root) && !id.includes('/node_modules/')

/** Forbids the pages of a static host, which sends no headers of its own, all content of other hosts. */
export function withPolicy(): Plugin {
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
  return {
    name: 'policy',
    transformIndexHtml: () => [
      { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: policy }, injectTo: 'head-prepend' }
    ]
  }
}

/** The built-in scenarios, which the page cannot read from files, and the values of its controls for them. */
function scenarios(): BuiltIn[] {
  return builtInScenarios().map(({ name, about }) => {
    const { values } = loadScenario(name)
    const scenario = parseScenario(values, name)
    const settings = CONTROLS.map(({ key }) => key.split('.').reduce<unknown>(inner, scenario) as number)
    return { name, about, values, settings }
  })
}

function inner(value: unknown, key: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[key]
}

/** The package `buffer` in place of the global of Node.js. */
const transform = { inject: { Buffer: ['buffer/', 'Buffer'] as [string, string] } }
const { version, imports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  readonly version: string
  readonly imports: Readonly<Record<string, { readonly browser?: string }>>
}

/** @param pages the HTML files below `src/page` @param outDir folder below the root of the repository */
export function pageConfig(pages: readonly string[], outDir: string): InlineConfig {
  return bundle({ input: pages.map(page => `${root}src/page/${page}`) }, outDir)
}

/** The library for browsers, and its worker. */
export function libraryConfig(entry: string, outDir: string): InlineConfig {
  // Vite does not minify libraries, for bundlers that drop what a program does not use. This one is used as a whole.
  const { build, ...config } = bundle({ output: { minify: true } }, outDir)
  return { ...config, build: { ...build, lib: { entry: `${root}${entry}`, formats: ['es'], fileName: 'index' } } }
}

function bundle(
  options: { readonly input?: string[]; readonly output?: { readonly minify: boolean } },
  outDir: string
): InlineConfig {
  return {
    configFile: false,
    root: `${root}src/page`,
    // Relative, so that the page works under any path.
    base: './',
    logLevel: 'warn',
    plugins: [browserOnly()],
    define: {
      ADMB_VERSION: JSON.stringify(version),
      BUILT_IN_SCENARIOS: JSON.stringify(scenarios())
    },
    worker: { format: 'es', plugins: () => [browserOnly()], rolldownOptions: { transform } },
    build: {
      outDir: `${root}${outDir}`,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // The script of a peer, with libp2p.
      chunkSizeWarningLimit: 1000,
      target: 'es2022',
      rolldownOptions: {
        ...options,
        transform,
        // Warnings about slow plug-ins, on a busy machine.
        checks: { pluginTimings: false }
      }
    }
  }
}
