var e=class{filename;constructor(e){this.filename=e}},t=t=>typeof t==`object`&&!!t&&!Array.isArray(t)&&!(t instanceof e),n=e=>Array.isArray(e),r=e=>Object.entries(e).filter(e=>e[1]!==void 0),i=`  `,a=(e,t)=>e.replaceAll(`
`,`\n${t}`),o=/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,s={"\n":`\\n`,"\r":`\\r`,"	":`\\t`};function c(e,t){return e.replaceAll(`\\`,`\\\\`).replaceAll(`"`,`\\"`).replace(o,e=>s[e]??t(e.charCodeAt(0).toString(16).padStart(4,`0`)))}var l=e=>`"${c(e,e=>`\\u${e}`)}"`,u=e=>/^d[89a-f]/.test(e)?`fffd`:e,d=e=>e.includes(`
`)&&!(e.replaceAll(/[\n\t]/g,``).match(o)??[]).length,f=e=>d(e)?`\`${e.replaceAll(`\\`,`\\\\`).replaceAll("`","\\`").replaceAll("${","\\${")}\``:l(e),p=e=>d(e)?`"""${e.replaceAll(`\\`,`\\\\`).replaceAll(`"""`,`\\"\\"\\"`).replace(/"$/,`\\"`)}"""`:l(e),m=e=>d(e)&&!e.includes("`")?`\`${e}\``:`"${c(e,e=>`\\u${u(e)}`)}"`;function h(e){if(!d(e))return`"${c(e,e=>`\\u{${u(e)}}`)}"`;let t=`#`;for(;e.includes(`"${t}`);)t+=`#`;return`r${t}"${e}"${t}`}var g=e=>/^[\w@%+=:,./-]+$/.test(e)?e:`'${e.replaceAll(`'`,`'\\''`)}'`;function _(e,[t,n],r,a={}){let{unit:o=i,comma:s=!0,pad:c=``}=a;if(e.length===0)return t+n;let l=`${t}${c}${e.join(`, `)}${c}${n}`;return l.length<=72&&!l.includes(`
`)?l:`${t}\n${e.map(e=>`${r}${o}${e}`).join(`,
`)}${s?`,`:``}\n${r}${n}`}function v(t,a,o=``,s=i){if(t==null)return a.words[2];if(typeof t==`string`)return a.text(t);if(typeof t==`number`)return a.number(t);if(typeof t==`boolean`)return a.words[+!t];if(t instanceof e)return a.file(t.filename);let c=o+s;return n(t)?a.list(t.map(e=>v(e,a,c,s)),o):a.object(r(t).map(([e,t])=>[e,v(t,a,c,s)]),o)}function y(o,s){if(o instanceof e)return s(o.filename);if(n(o)){let e=o.map(e=>i+a(y(e,s),i));return e.length?`[\n${e.join(`,
`)}\n]`:`[]`}if(t(o)){let e=r(o).map(([e,t])=>`${i}${l(e)}: ${a(y(t,s),i)}`);return e.length?`{\n${e.join(`,
`)}\n}`:`{}`}return typeof o==`string`?l(o):JSON.stringify(o??null)}var b=[`true`,`false`,`null`],x=/^[A-Za-z_$][\w$]*$/,S={text:f,number:String,words:b,file:e=>`readFileSync(${l(e)}).toString("base64")`,list:(e,t)=>_(e,[`[`,`]`],t),object:(e,t)=>_(e.map(([e,t])=>`${x.test(e)?e:l(e)}: ${t}`),[`{`,`}`],t,{pad:` `})},C={text:p,number:String,words:[`True`,`False`,`None`],file:e=>`b64encode(Path(${l(e)}).read_bytes()).decode()`,list:(e,t)=>_(e,[`[`,`]`],t,{unit:`    `}),object:(e,t)=>_(e.map(([e,t])=>`${l(e)}: ${t}`),[`{`,`}`],t,{unit:`    `})},w={text:m,number:e=>Number.isInteger(e)&&!Number.isSafeInteger(e)?`float64(${e})`:String(e),words:[`true`,`false`,`nil`],file:()=>`content`,list:(e,t)=>_(e,[`[]any{`,`}`],t,{unit:`	`}),object:(e,t)=>_(e.map(([e,t])=>`${m(e)}: ${t}`),[`map[string]any{`,`}`],t,{unit:`	`})},T={text:h,number(e){return Number.isInteger(e)?Number.isSafeInteger(e)?Math.abs(e)>2147483647?`${e}_i64`:String(e):`${e.toExponential()}_f64`.replace(`e+`,`e`):`${e}_f64`},words:b,file:()=>`content`,list:(e,t)=>_(e,[`[`,`]`],t,{unit:`    `}),object:(e,t)=>_(e.map(([e,t])=>`${h(e)}: ${t}`),[`{`,`}`],t,{unit:`    `,pad:` `})};function E(t,n){let r=t.attachments?.map(t=>({...t,content:t.content===void 0?void 0:new e(t.filename)}));return O({path:`/v1/send`,method:[`messages`,`send`],type:`SendMessageRequest`,first:`to`,answer:`message`,fields:{...t,attachments:r}},n)}function D(e,t,n){return O({path:`/v1/templates/${encodeURIComponent(e)}/test-send`,id:e,method:[`templates`,`sendTest`],type:`SendTemplateTestRequest`,first:`to`,answer:`test`,fields:t},n)}var O=(e,t)=>[[`curl`,A(e,t)],[`TypeScript`,j(e)],[`Python`,P(e)],[`Go`,U(e)],[`Rust`,J(e)]],k=t=>(n(t.attachments)?t.attachments:[]).flatMap(e=>Object.values(e)).filter(t=>t instanceof e).map(e=>e.filename);function A({path:e,fields:t},n){let r=`curl ${g(n+e)} \\\n  -H "Authorization: Bearer $WAYPOST_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n`;if(k(t).length===0)return`${r}  --data-raw ${g(y(t,l))}\n`;let i=[];return`${r}  --data-binary @- <<JSON\n${y(t,e=>`"\u0000${i.push(e)-1}\u0000"`).replaceAll(/[\\$`]/g,`\\$&`).replaceAll(/\u0000(\d+)\u0000/g,(e,t)=>`$(base64 < ${g(i[Number(t)])} | tr -d '\\n')`)}\nJSON\n`}function j({id:e,method:t,answer:n,fields:i}){let a=k(i).length>0?`import { readFileSync } from "node:fs";
`:``,o=r(i).map(([e,t])=>`  ${e}: ${v(t,S,`  `)},\n`);return`${a}import { Waypost } from "waypost";

const waypost = new Waypost(); // WAYPOST_API_KEY and WAYPOST_URL
const ${n} = await waypost.${t.join(`.`)}(${e===void 0?``:`${l(e)}, `}{
${o.join(``)}});
console.log(${n});
`}var M=e=>e.replaceAll(/[A-Z]/g,e=>`_${e.toLowerCase()}`),N=e=>n(e)?e.map(e=>typeof e==`object`&&e?N(e):e):Object.fromEntries(r(e).map(([e,t])=>[M(e),t]));function P({id:e,method:t,answer:n,fields:i}){let a=k(i).length>0?`from base64 import b64encode
from pathlib import Path

`:``,o=r(i).map(([e,t])=>{let n=e===`attachments`||e===`tracking`?N(t):t;return`    ${e===`from`?`from_`:M(e)}=${v(n,C,`    `,`    `)},\n`});return`${a}from waypost import Waypost

waypost = Waypost()  # WAYPOST_API_KEY and WAYPOST_URL
${n} = waypost.${t.map(M).join(`.`)}(
${e===void 0?``:`    ${l(e)},\n`}${o.join(``)})
print(${n})
`}var F=e=>e.charAt(0).toUpperCase()+e.slice(1),I={cc:`CC`,bcc:`BCC`,html:`HTML`,url:`URL`},L=e=>I[e]??F(e).replace(/Id$/,`ID`),R=e=>(n(e)?e:[e]).map(e=>String(e));function z(e,t,n,i){let a=()=>_(R(t).map(m),[`{`,`}`],n,{unit:`	`}),o=`${n}\t`;switch(e){case`to`:return i?`waypost.Addresses${a()}`:`waypost.To${_(R(t).map(m),[`(`,`)`],n,{unit:`	`})}`;case`cc`:case`bcc`:case`replyTo`:return`waypost.Addresses${a()}`;case`tags`:return`[]string${a()}`;case`headers`:return`map[string]string${_(r(t).map(([e,t])=>`${m(e)}: ${m(String(t))}`),[`{`,`}`],n,{unit:`	`})}`;case`test`:return`waypost.Value(${String(t)})`;case`testOutcome`:return`waypost.TestOutcome${F(String(t))}`;case`delivery`:return`waypost.DeliveryMode${F(String(t))}`;case`scheduledAt`:case`expiresAt`:return e;case`tracking`:return`&waypost.Tracking{${r(t).map(([e,t])=>`${F(e)}: waypost.Value(${String(t)})`).join(`, `)}}`;case`attachments`:return`[]waypost.MessageAttachment{\n${t.map((e,t)=>`${o}{${B(e,t)}},\n`).join(``)}${n}}`;default:return v(t,w,n,`	`)}}var B=(t,n)=>r(t).map(([t,r])=>`${L(t)}: ${r instanceof e?`content${n}`:m(String(r))}`).join(`, `);function V(e){let t=t=>e[t]?.[1].includes(`
`)===!1;return e.map(([n,r],i)=>{if(!t(i))return`\t\t${n}: ${r},\n`;let[a,o]=[i,i];for(;t(a-1);)a--;for(;t(o+1);)o++;let s=Math.max(...e.slice(a,o+1).map(([e])=>e.length));return`\t\t${n}: ${` `.repeat(s-n.length)}${r},\n`})}var H=`	if err != nil {
		log.Fatal(err)
	}
`;function U({id:t,method:i,type:a,answer:o,fields:s}){let c=r(s),l=c.filter(([e])=>e===`scheduledAt`||e===`expiresAt`),u=(n(s.attachments)?s.attachments:[]).map(e=>e.content),d=[`context`,`fmt`,`log`,...u.some(t=>t instanceof e)?[`os`]:[],...l.length>0?[`time`]:[]],f=[...l.map(([e,t])=>`\t${e}, err := time.Parse(time.RFC3339, ${m(String(t))})\n${H}`),...u.map((t,n)=>t instanceof e?`\tcontent${n}, err := os.ReadFile(${m(t.filename)})\n${H}`:``)],p=a===`SendTemplateTestRequest`,h=V(c.map(([e,t])=>[L(e),z(e,t,`		`,p)]));return`package main

import (
${d.map(e=>`\t"${e}"\n`).join(``)}
	"waypost"
)

func main() {
	client, err := waypost.New() // WAYPOST_API_KEY and WAYPOST_URL
${H}${f.join(``)}	${o}, err := client.${i.map(F).join(`.`)}(context.Background(), ${t===void 0?``:`${m(t)}, `}&waypost.${a}{
${h.join(``)}	})
${H}	fmt.Println(${o})
}
`}var W=e=>{let t=R(e).map(h);return n(e)?_(t,[`[`,`]`],`        `,{unit:`    `}):t[0]};function G(e,t){switch(e){case`to`:case`cc`:case`bcc`:case`replyTo`:case`tags`:return W(t);case`headers`:return _(r(t).map(([e,t])=>`(${h(e)}, ${h(String(t))})`),[`[`,`]`],`        `,{unit:`    `});case`testOutcome`:return`TestOutcome::${F(String(t))}`;case`delivery`:return`DeliveryMode::${F(String(t))}`;case`scheduledAt`:case`expiresAt`:return`DateTime::parse_from_rfc3339(${h(String(t))})?`;case`tracking`:return`Tracking::new()${r(t).map(([e,t])=>`.${e}(${String(t)})`).join(``)}`;case`attachments`:return _(t.map(K),[`[`,`]`],`        `,{unit:`    `});case`metadata`:case`variables`:return`json!(${v(t,T,`        `,`    `)})`;default:return v(t,T,`        `,`    `)}}function K(t){let n=r(t).filter(([e])=>e!==`filename`).map(([t,n])=>{let r=n instanceof e?`STANDARD.encode(std::fs::read(${h(n.filename)})?)`:h(String(n));return`.${M(t)}(${r})`});return`MessageAttachment::new(${h(String(t.filename))})${n.join(``)}`}var q=[[`attachments`,`MessageAttachment`],[`delivery`,`DeliveryMode`],[`testOutcome`,`TestOutcome`],[`tracking`,`Tracking`]];function J({id:e,method:t,type:n,first:i,answer:a,fields:o}){let s=r(o),c=(...e)=>s.some(([t])=>e.includes(t)),l=[...q.filter(([e])=>c(e)).map(([,e])=>e),n].sort(),u=[k(o).length>0&&`use base64::{Engine as _, engine::general_purpose::STANDARD};
`,c(`scheduledAt`,`expiresAt`)&&`use waypost::chrono::DateTime;
`,c(`metadata`,`variables`)&&`use waypost::serde_json::json;
`,l.length===1?`use waypost::{Waypost, types::${l[0]}};\n`:`use waypost::{\n    Waypost,\n    types::{${l.join(`, `)}},\n};\n`],d=s.filter(([e])=>e!==i).map(([e,t])=>`\n        .${M(e)}(${G(e,t)})`),f=`waypost.${M(t[0])}().${M(t[1])}(${e===void 0?``:`${h(e)}, `}&request).await?`;return`${u.filter(Boolean).join(``)}
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let waypost = Waypost::from_env()?; // WAYPOST_API_KEY and WAYPOST_URL
    let request = ${n}::new(${G(i,o[i])})${d.join(``)};
    let ${a} = ${f};
    println!("{${a}:?}");
    Ok(())
}
`}export{D as n,E as t};