//! Query parameters. They are read as poem-openapi reads them. In addition, the mistakes
//! in a parameter are added to [`QueryIssues`], so that the response reports them
//! together with unknown and repeated parameters.

use poem::{Request, RequestBody};
use poem_openapi::param;
use poem_openapi::registry::{MetaParamIn, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};

use crate::middleware::unknown_fields::QueryIssues;
use crate::validate::{Field, Validated};

/// A query parameter.
pub(crate) struct Query<T>(pub(crate) T);

type QueryParam<T> = param::Query<Validated<T>>;

impl<'a, T: Field> ApiExtractor<'a> for Query<Validated<T>> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    const PARAM_IS_REQUIRED: bool = T::REQUIRED;

    type ParamType = Validated<T>;
    type ParamRawType = Validated<T>;

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn param_in() -> Option<MetaParamIn> {
        <QueryParam<T> as ApiExtractor>::param_in()
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        <QueryParam<T> as ApiExtractor>::param_schema_ref()
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        mut options: ExtractParamOptions<Self::ParamType>,
    ) -> poem::Result<Self> {
        let name = options.name;
        // A field splits a list itself; poem-openapi (5.1.16) panics where one is absent.
        options.explode = true;
        let param::Query(read) = QueryParam::<T>::from_request(request, body, options).await?;
        if let Some(issues) = request.data::<QueryIssues>() {
            issues.add(read.issues(name));
        }
        Ok(Self(read))
    }
}
